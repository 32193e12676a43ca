"""Statements of a person as they run: in a thread, with what they say in a queue that the page empties."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from penstock.client.errors import Refused, Unreachable, UserError, one_line
from penstock.console.upstream.sql import sql_server
from penstock.sql.client.rendering import lines_of
from penstock.sql.client.service import ServerRefused, SqlServer
from penstock.sql.client.session import Session
from penstock.sql.client.tables import text

MAX_RUNS: Final = 24
"""Runs of all pages of this console at a time."""
MAX_SAID: Final = 2000
"""What waits for the page; a server that is faster than it waits."""
MAX_RUN_MS: Final = 3_600_000
MAX_CELL_CHARS: Final = 2000
MAX_LINE_CHARS: Final = 8000
MAX_COLUMNS: Final = 100
"""Of a row; what is beyond is left out."""
MAX_STATEMENT_CHARS: Final = 300
_TEXTS: Final = re.compile(r"'(?:[^']|'')*'")
_VALUES: Final = re.compile(r"(\bVALUES\b)[^;]*", re.IGNORECASE)

_running = threading.BoundedSemaphore(MAX_RUNS)


class Said(NamedTuple):
    """Lines for a person: of an answer, or of PRINT."""

    lines: tuple[str, ...]


class Heads(NamedTuple):
    """A query's rows begin."""

    names: tuple[str, ...]


class Row(NamedTuple):
    cells: tuple[str, ...]


class Failed(NamedTuple):
    message: str


class Ended(NamedTuple):
    """The last of a run."""


Told = Said | Heads | Row | Failed | Ended


class SqlRun:
    """One run. `take` what it says until `Ended`; `stop` it at any time, also twice."""

    def __init__(
        self, url: str, text: str, properties: Mapping[str, str], *, authority: str | None = None
    ) -> None:
        """Busy consoles refuse it with UserError."""
        self._server = sql_server(url, authority)
        if not _running.acquire(blocking=False):
            raise UserError(f"{MAX_RUNS} runs are under way in this console; stop one, or try again soon")
        self._said: queue.Queue[Told] = queue.Queue(MAX_SAID)
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(text, dict(properties)), name="console-sql", daemon=True
        )
        self._thread.start()

    def take(self, at_most: int) -> list[Told]:
        """What it has said since, without waiting."""
        found: list[Told] = []
        while len(found) < at_most:
            try:
                found.append(self._said.get_nowait())
            except queue.Empty:
                break
        return found

    def stop(self) -> None:
        self._is_stopped.set()
        self._server.close()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped.is_set()

    def tell(self, said: Told) -> None:
        """Waits for the page where it is behind. What is told after a stop may be lost."""
        while True:
            try:
                self._said.put(said, timeout=0.2)
                return
            except queue.Full:
                if self.is_stopped:
                    return

    def _run(self, statements: str, properties: Mapping[str, str]) -> None:
        try:
            session = _PageSession(self, self._server)
            session.properties.update(properties)
            session.run(statements)
        except (UserError, Refused, Unreachable) as error:
            self._fail(str(error))
        except ServerRefused as error:
            self._fail(str(error))
        except Exception as error:
            self._fail(f"the answer cannot be understood: {type(error).__name__}")
        finally:
            _running.release()
            self.tell(Ended())

    def _fail(self, message: str) -> None:
        if not self.is_stopped:
            self.tell(Failed(message))


class _PageSession(Session):
    def __init__(self, run: SqlRun, server: SqlServer) -> None:
        super().__init__(server, timeout_ms=MAX_RUN_MS)
        self._page_run = run

    def say(self, line: str) -> None:
        self._page_run.tell(Said((line[:MAX_LINE_CHARS],)))

    def show_entities(self, entities: list[dict[str, Any]]) -> None:
        for entity in entities:
            self._page_run.tell(Said(tuple(lines_of(entity))))

    def show_header(self, element: dict[str, Any], names: list[str]) -> None:
        self._page_run.tell(Heads(tuple(names[:MAX_COLUMNS])))

    def show_row(self, element: dict[str, Any], values: Sequence[Any]) -> None:
        self._page_run.tell(Row(tuple(text(each)[:MAX_CELL_CHARS] for each in values[:MAX_COLUMNS])))

    def show_message(self, element: dict[str, Any], message: str) -> None:
        self.say(message)

    def show_end(self, words: str) -> None:
        self.say(words)

    def run_file(self, path: str) -> NoReturn:
        raise UserError(
            "RUN SCRIPT reads a file of this machine, which the console does not: paste the script instead"
        )


def without_values(statements: str) -> str:
    """The statements for a log: no texts, which may be passwords or data, and no rows of INSERT.

    >>> without_values("INSERT INTO pay VALUES ('ana', 12);")
    'INSERT INTO pay VALUES …;'
    """
    plain = _VALUES.sub(r"\1 …", _TEXTS.sub("'…'", statements))
    line = one_line(plain)
    return line if len(line) <= MAX_STATEMENT_CHARS else line[: MAX_STATEMENT_CHARS - 1] + "…"
