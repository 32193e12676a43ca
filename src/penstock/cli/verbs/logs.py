"""penstock logs: what the services of a stack write."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.verbs.stack_place import located

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")


@click.command()
@click.argument("services", metavar="[SERVICE]...", nargs=-1)
@located
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    "--tail",
    "lines",
    type=click.IntRange(min=0),
    metavar="N",
    help="Begin with the last N lines of each (20; with --since all of that time).",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Only what was written since: 90s, 10m, 2h, 1d ago, 14:30 of today, or 2026-01-31T14:30.",
)
def logs(services: tuple[str, ...], data: Path, follow: bool, lines: int | None, since: str | None) -> None:
    """Show the logs of what `penstock up` started: of each SERVICE, or of all.

    SERVICE is a name that penstock status shows (broker-2), or a service (broker) for all of its kind. Where there are
    several, each line begins with the name of who wrote it. With --since the lines of all are in the order of their
    times.

    \b
    Example:
      penstock logs broker-1 -n 50
      penstock logs -f
      penstock logs --since 10m broker connect
    """
    from penstock.stack.log_times import parse_since, read_since
    from penstock.stack.logs import read_logs
    from penstock.stack.stack_file import existing_stack

    since_s = parse_since(since) if since is not None else None
    stack = existing_stack(data)
    members = stack.chosen(services) or list(stack.members)
    width = max(len(member.name) for member in members)
    heads = {
        member.name: click.style(f"{member.name:{width}} | ", fg=COLOURS[position % len(COLOURS)])
        for position, member in enumerate(stack.members)
    }
    found = (
        read_logs(stack, members, last=DEFAULT_LINES if lines is None else lines, follow=follow)
        if since_s is None
        else read_since(stack, members, since_s=since_s, last=lines, follow=follow)
    )
    for member, text in found:
        click.echo((heads[member.name] if len(members) > 1 else "") + text)


DEFAULT_LINES = 20
