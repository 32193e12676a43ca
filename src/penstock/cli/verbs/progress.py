"""What a command that takes its time shows of it: a line for each thing done, one moving line for what is waited for."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from penstock.cli.verbs.output import console, say
from penstock.stack.stack import Tell


@contextlib.contextmanager
def narration() -> Iterator[tuple[Tell, Tell]]:
    """(tell, waiting): the first says what is done, the second what is waited for now.

    Where stderr is no terminal, each new sentence is a line, once.
    """
    if not sys.stderr.isatty():
        shown = ""

        def line(sentence: str) -> None:
            nonlocal shown
            if sentence != shown:
                print(f"  {sentence}", file=sys.stderr, flush=True)
                shown = sentence

        yield say, line
        return
    from rich.markup import escape

    terminal = console(stderr=True)
    with terminal.status("") as status:
        yield (
            lambda sentence: terminal.print(f"[green]✓[/green] {escape(sentence)}"),
            lambda sentence: status.update(escape(sentence)),
        )
