"""The prompt for people: lines up to a semicolon are a statement; history, completion, and a few commands of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

import penstock
from penstock.cli.ksql.service import ServerRefused
from penstock.cli.ksql.session import JSON, TABULAR, Session
from penstock.cli.ksql.statements import is_complete
from penstock.cli.ksql.tables import table
from penstock.client.errors import Unreachable, UserError

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
HELP: Final = """
Statements end with a semicolon: SHOW STREAMS; DESCRIBE s; SELECT * FROM s EMIT CHANGES; PRINT topic FROM BEGINNING;
The prompt's own commands:

  help                   this text
  clear                  clears the screen
  history                what was typed before
  output [TABULAR|JSON]  shows or changes the form of results
  run script '<file>'    runs the statements of a file
  server [<url>]         shows or changes the server
  spool <file> | OFF     writes what is shown to a file, too
  version                the version of this prompt
  exit, quit, Ctrl-D     ends it; Ctrl-C ends a query
"""


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
            done = _own(line, session, reader.history.get_strings())
            if done is _LEAVE:
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


def attempted(session: Session, call: Callable[[], None]) -> bool:
    """Shows what went wrong, in one or a few lines."""
    try:
        call()
        return True
    except ServerRefused as error:
        for entity in error.document.get("entities") or ():
            from penstock.cli.ksql.rendering import lines_of

            print("\n".join(lines_of(entity)))
        print(str(error))
    except (UserError, Unreachable) as error:
        print(str(error))
    except KeyboardInterrupt:
        print("^C")
    return False


_LEAVE: Final = object()


def _own(line: str, session: Session, history: Iterable[str]) -> object:
    """Truthy when it was a command of the prompt's own."""
    words = line.strip().rstrip(";").split(None, 1)
    if not words:
        return True
    name, rest = words[0].lower(), words[1].strip() if len(words) > 1 else ""
    if name in ("exit", "quit") and not rest:
        return _LEAVE
    if name == "help":
        print(HELP)
    elif name == "clear" and not rest:
        print("\033[2J\033[H", end="")
    elif name == "history" and not rest:
        for number, each in enumerate(history, start=1):
            print(f"{number:4}: {each}")
    elif name == "version" and not rest:
        print(f"Version: {penstock.__version__}")
    elif name == "output":
        _output(rest.upper(), session)
    elif name == "server":
        if rest:
            from penstock.cli.ksql.service import SqlServer

            attempted(session, lambda: setattr(session, "server", SqlServer(rest.strip("'"))))
        print("\n".join(table(["Server"], [[session.server.url]])[1:]))
    elif name == "spool":
        _spool(rest.strip("'"), session)
    elif name == "run" and rest.lower().startswith("script"):
        path = rest[len("script") :].strip().strip("'")
        attempted(session, lambda: session.run_file(path))
    else:
        return False
    return True


def _output(wanted: str, session: Session) -> None:
    if wanted in (TABULAR, JSON):
        session.output = wanted
        print(f"Output format set to {wanted}")
    elif wanted:
        print(f"Invalid output format: '{wanted}' (valid formats: '{JSON}', '{TABULAR}')")
    else:
        print(f"Current output format: {session.output}")


def _spool(path: str, session: Session) -> None:
    if path.upper() == "OFF":
        session.show = print
        print("Stopped spooling")
        return

    def both(line: str) -> None:
        print(line)
        with Path(path).open("a") as file:
            file.write(line + "\n")

    session.show = both
    print(f"Session will be spooled to {path}")


def _history() -> History:
    path = Path(HISTORY).expanduser()
    try:
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
