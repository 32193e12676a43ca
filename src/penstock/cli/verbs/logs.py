"""penstock logs: what the services of a stack write."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.verbs.up import data_option

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")


@click.command()
@click.argument("services", metavar="[SERVICE]...", nargs=-1)
@data_option
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Begin with the last N lines of each.",
)
def logs(services: tuple[str, ...], data: Path, follow: bool, lines: int) -> None:
    """Show the logs of what `penstock up` started: of each SERVICE, or of all.

    SERVICE is a name that penstock status shows (broker-2), or a service (broker) for all of its kind. Where there are
    several, each line begins with the name of who wrote it.

    \b
    Example:
      penstock logs broker-1 -n 50
      penstock logs -f
    """
    from penstock.stack.logs import read_logs
    from penstock.stack.stack_file import existing_stack

    stack = existing_stack(data)
    members = stack.chosen(services) or list(stack.members)
    width = max(len(member.name) for member in members)
    heads = {
        member.name: click.style(f"{member.name:{width}} | ", fg=COLOURS[position % len(COLOURS)])
        for position, member in enumerate(stack.members)
    }
    for member, text in read_logs(stack, members, last=lines, follow=follow):
        click.echo((heads[member.name] if len(members) > 1 else "") + text)
