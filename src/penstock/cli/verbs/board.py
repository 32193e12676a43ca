"""What `penstock up` shows while services start: on a terminal a table of all of them that changes, elsewhere lines."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from penstock.cli.verbs.output import console
from penstock.cli.verbs.progress import narration
from penstock.cli.verbs.stack_place import words
from penstock.stack import processes
from penstock.stack.contents.outcome import Kind
from penstock.stack.stack import Stack, Tell

STYLES = {
    "healthy": "green",
    "starts": "yellow",
    "runs": "yellow",
    "waits": "dim",
    "ended": "red",
    "late": "red",
}
WORDS = {"runs": "runs, is asked", "waits": "waits for what it needs"}
REFRESH_PER_S = 8
MEBIBYTE = 1 << 20


class Board:
    """Gets what happens, as `bring_up` and `Applying` tell it."""

    def __init__(self, tell: Tell, waiting: Tell, data: Path) -> None:
        self.tell, self.waiting = tell, waiting
        self._data = data

    def hint(self, sentence: str) -> None:
        click.echo(sentence.format(words(self._data)), err=True)

    def begin(self, stack: Stack) -> None:
        """The members are known now."""

    def show(self, name: str, state: str) -> None: ...

    def settled(self) -> None:
        """Nothing is waited for any more."""

    def told(self, kind: Kind, sentence: str) -> None:
        marks = {"done": ("green", "✓"), "differs": ("yellow", "≠"), "failed": ("red", "✗")}
        colour, mark = marks[kind]
        from rich.markup import escape

        console(stderr=True).print(f"[{colour}]{mark}[/{colour}] {escape(sentence)}", soft_wrap=True)


class LiveBoard(Board):
    """A table on stderr that is drawn anew; sentences stand above it."""

    def __init__(self, live: Any, data: Path) -> None:
        super().__init__(self._tell, self._wait, data)
        self._live = live
        self._stack: Stack | None = None
        self._states: dict[str, tuple[str, float]] = {}
        self._took_s: dict[str, float] = {}
        self._line = ""

    def begin(self, stack: Stack) -> None:
        self._stack = stack

    def show(self, name: str, state: str) -> None:
        before = self._states.get(name)
        if before is not None and state == "healthy" and before[0] == "starts":
            self._took_s[name] = time.monotonic() - before[1]
        self._states[name] = (state, time.monotonic())
        self._live.update(self)

    def told(self, kind: Kind, sentence: str) -> None:
        if kind != "done":
            from rich.markup import escape

            colour, mark = ("yellow", "≠") if kind == "differs" else ("red", "✗")
            self._live.console.print(f"[{colour}]{mark}[/{colour}] {escape(sentence)}", soft_wrap=True)
        else:
            self._said(sentence)

    def settled(self) -> None:
        self._wait("")

    def _tell(self, sentence: str) -> None:
        """That a member is up is in the table."""
        if not any(sentence.startswith((f"{name} is up", f"{name} runs already")) for name in self._states):
            self._said(sentence)

    def _said(self, sentence: str) -> None:
        from rich.markup import escape

        self._live.console.print(f"[green]✓[/green] {escape(sentence)}", soft_wrap=True)

    def _wait(self, sentence: str) -> None:
        self._line = sentence
        self._live.update(self)

    def __rich__(self) -> Any:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        if self._stack is None:
            return Text(self._line, style="dim")
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold cyan")
        for heading in ("service", "health", "address", "pid", "memory", "ready after"):
            table.add_column(
                heading, justify="right" if heading in ("pid", "memory", "ready after") else "left"
            )
        for member in self._stack.members:
            state, since_s = self._states.get(member.name, ("", 0.0))
            pid = processes.running_pid(self._stack, member)
            vitals = processes.vitals_of(pid) if pid is not None else None
            took = f"{self._took_s[member.name]:.1f} s" if member.name in self._took_s else ""
            if state == "starts":
                took = f"{time.monotonic() - since_s:.1f} s …"
            table.add_row(
                Text(member.name),
                Text(WORDS.get(state, state), style=STYLES.get(state, "")),
                Text(str(self._stack.address_of(member))),
                "" if pid is None else str(pid),
                "" if vitals is None else f"{vitals.memory_bytes / MEBIBYTE:.0f} MiB",
                took,
            )
        is_over = all(state == "healthy" for state, _ in self._states.values())
        return table if is_over or not self._line else Group(table, Text(self._line, style="dim"))


@contextlib.contextmanager
def board(data: Path) -> Iterator[Board]:
    if not sys.stderr.isatty():
        with narration() as (tell, waiting):
            yield Board(tell, waiting, data)
        return
    from rich.live import Live

    with Live(console=console(stderr=True), refresh_per_second=REFRESH_PER_S, transient=False) as live:
        yield LiveBoard(live, data)
