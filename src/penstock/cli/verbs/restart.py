"""penstock restart: some of a stack, while the rest serves."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.verbs.stack_place import located


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@located
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long replicas may take to be in sync again, where brokers are restarted.",
)
def restart(names: tuple[str, ...], data: Path, timeout_s: float) -> None:
    """Restart services that `penstock up` started: each NAME, with the options that the stack has now.

    NAME is a name that penstock status shows (broker-2), or a service (broker) for all of its kind, one after the other.
    The next broker is stopped only when every replica is in sync again. What does not run is started.

    \b
    Example:
      penstock restart connect
      penstock restart broker-2 rest --data ./cluster
    """
    from penstock.cli.verbs.progress import narration
    from penstock.stack.restarting import restart_rolling
    from penstock.stack.stack_file import locked_stack

    with locked_stack(data) as stack, narration() as (tell, waiting):
        for group in stack.in_start_order(stack.chosen(names)):
            restart_rolling(stack, group, tell=tell, waiting=waiting, timeout_s=timeout_s)
