"""What `penstock up --foreground` does after the start: it watches, and ends what it started."""

from __future__ import annotations

import contextlib
import datetime
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click


@contextlib.contextmanager
def until_sigterm() -> Iterator[None]:
    """SIGTERM, which service managers and containers send, ends the command as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def stay(data: Path) -> int:
    """Watches until it is interrupted or nothing is left, then stops everything. 1 when a member was given up."""
    from penstock.cli.verbs.progress import narration
    from penstock.stack.stack_file import locked_stack, read_stack
    from penstock.stack.starting import running
    from penstock.stack.stopping import STOP_TIMEOUT_S, bring_down
    from penstock.stack.watching import Watch

    watch = Watch(data, tell=_tell_with_time)
    click.echo("Watching. Ctrl-C stops everything.", err=True)
    try:
        watch.run()
        _tell_with_time("nothing runs any more")
    except KeyboardInterrupt:
        click.echo("", err=True)
    if read_stack(data) is None:  # penstock down --volumes
        return 0
    with locked_stack(data, patience_s=STOP_TIMEOUT_S) as stack, narration() as (tell, waiting):
        bring_down(stack, running(stack, stack.members), tell=tell, waiting=waiting)
    return 1 if watch.given_up else 0


def _tell_with_time(sentence: str) -> None:
    click.echo(f"{datetime.datetime.now():%H:%M:%S} {sentence}", err=True)
