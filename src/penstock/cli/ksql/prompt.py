"""The prompt for people: lines up to a semicolon are a statement; history, completion, and a few commands of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

import penstock
from penstock.cli.ksql.own_commands import LEAVE, attempted, own
from penstock.cli.ksql.session import Session
from penstock.client.errors import Unreachable
from penstock.sql.client.service import ServerRefused
from penstock.sql.client.statements import is_complete

HISTORY: Final = "~/.penstock-ksql-history"
_KEYWORDS: Final = (
    "SELECT FROM WHERE GROUP BY HAVING PARTITION EMIT CHANGES FINAL LIMIT WINDOW TUMBLING HOPPING SESSION SIZE ADVANCE "
    "GRACE PERIOD RETENTION CREATE OR REPLACE SOURCE STREAM TABLE WITH AS INSERT INTO VALUES DROP DELETE TOPIC ALTER ADD "
    "COLUMN SHOW LIST STREAMS TABLES TOPICS QUERIES FUNCTIONS PROPERTIES TYPES VARIABLES EXTENDED DESCRIBE FUNCTION EXPLAIN "
    "PRINT BEGINNING INTERVAL TERMINATE PAUSE RESUME ALL SET UNSET DEFINE UNDEFINE TYPE IF EXISTS NOT NULL AND IN LIKE "
    "BETWEEN CASE WHEN THEN ELSE END CAST INNER LEFT RIGHT FULL OUTER JOIN WITHIN ON PRIMARY KEY HEADERS VARCHAR STRING "
    "INT BIGINT DOUBLE BOOLEAN DECIMAL BYTES DATE TIME TIMESTAMP ARRAY MAP STRUCT RUN SCRIPT KAFKA_TOPIC VALUE_FORMAT "
    "KEY_FORMAT FORMAT PARTITIONS REPLICAS ROWTIME WINDOWSTART WINDOWEND"
)


class _Words(Completer):
    """Keywords, and the names of what there is at the server."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: list[str] = []
        self.is_stale = True

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        word = document.get_word_before_cursor(WORD=False)
        if not word:
            return
        if self.is_stale:
            self._names, self.is_stale = self._asked(), False
        for each in (*self._names, *_KEYWORDS.split()):
            if each.lower().startswith(word.lower()):
                yield Completion(each, start_position=-len(word))

    def _asked(self) -> list[str]:
        found: list[str] = []
        for text, field in (
            ("SHOW STREAMS;", "streams"),
            ("SHOW TABLES;", "tables"),
            ("SHOW FUNCTIONS;", "functions"),
        ):
            try:
                (entity,) = self._session.server.statements(text, {}, {}, None)
            except (ServerRefused, Unreachable, ValueError):
                continue
            found += [str(one["name"]) for one in entity.get(field, ())]
        return found


def banner(session: Session) -> None:
    info = session.server.info()
    print(f"\nksql of Penstock {penstock.__version__}, server {info.get('version')} at {session.server.url}")
    print("Having trouble? Type 'help' for a rundown of how things work!\n")


def prompt(session: Session) -> int:
    """Until the person leaves."""
    words = _Words(session)
    reader: PromptSession[str] = PromptSession(
        history=_history(), completer=words, complete_while_typing=False
    )
    session.width = shutil.get_terminal_size().columns
    pending = ""
    while True:
        try:
            line = reader.prompt("ksql> " if not pending else "> ")
        except KeyboardInterrupt:
            pending = ""
            continue
        except EOFError:
            print("Exiting ksqlDB.")
            return 0
        if not pending:
            done = own(line, session, reader.history.get_strings())
            if done is LEAVE:
                print("Exiting ksqlDB.")
                return 0
            if done:
                continue
        pending = f"{pending}\n{line}" if pending else line
        if not is_complete(pending):
            pending = "" if not pending.strip() else pending
            continue
        text, pending = pending, ""
        session.width = shutil.get_terminal_size().columns
        attempted(session, lambda text=text: session.run(text))  # type: ignore[misc]
        words.is_stale = True


def _history() -> History:
    path = Path(HISTORY).expanduser()
    try:
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
