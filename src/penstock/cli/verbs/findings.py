"""Findings of `penstock doctor` and `penstock plan --check`, shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.cli.verbs.common_options import DEFAULT_BOOTSTRAP

if TYPE_CHECKING:
    from penstock.advice.doctor import Finding
    from penstock.client.clients import Connection

COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def placed(found: list[Finding], connection: Connection, config: str | None = None) -> list[Finding]:
    """The same with where the cluster is in their commands, so that they can be copied. `config` is the file with the login."""
    from penstock.advice.doctor import with_connection

    place = None if connection.bootstrap == DEFAULT_BOOTSTRAP else connection.bootstrap
    return [
        one if one.command is None else one._replace(command=with_connection(one.command, place, config))
        for one in found
    ]


def document(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "severity": finding.severity.value,
        "title": finding.title,
        "evidence": list(finding.evidence),
        "advice": finding.advice,
        "commands": finding.command.split("\n") if finding.command else [],
    }


def draw(found: list[Finding], *, nothing: str) -> None:
    """For people. What a cluster named itself is written as it is, never as markup."""
    from rich.markup import escape

    from penstock.cli.verbs.output import console

    terminal = console()
    for number, one in enumerate(found):
        colour = COLOURS[one.severity.value]
        if number:
            terminal.print()
        check = f" [dim]({one.check})[/dim]" if one.check else ""
        terminal.print(f"[{colour}]{one.severity.value}[/{colour}] {escape(one.title)}{check}")
        for line in one.evidence:
            terminal.print(f"  {escape(line)}")
        terminal.print(f"  → {escape(one.advice)}")
        for line in (one.command or "").splitlines():
            terminal.print(f"  [green]$ {escape(line)}[/green]", soft_wrap=True)
    if not found:
        terminal.print(f"[green]nothing found[/green]: {nothing}")
        return
    counts = {each: sum(one.severity.value == each for one in found) for each in COLOURS}
    said = [f"{number} {each}{'' if number == 1 else 's'}" for each, number in counts.items() if number]
    click.echo(f"\n{', '.join(said)}", err=True)
