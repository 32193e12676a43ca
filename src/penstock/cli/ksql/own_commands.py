"""The prompt's own commands, which take no semicolon: help, exit, output and the like; also in what is piped into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import penstock
from penstock.cli.ksql.session import JSON, TABULAR, Session
from penstock.client.errors import Unreachable, UserError
from penstock.sql.client.rendering import lines_of
from penstock.sql.client.service import ServerRefused, SqlServer
from penstock.sql.client.statements import is_complete
from penstock.sql.client.tables import table

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

LEAVE: Final = object()
Attempt = Callable[[Callable[[], None]], object]


def run_lines(lines: Iterable[str], session: Session) -> None:
    """Without a person: the first statement that is refused ends it (UserError, ServerRefused, Unreachable)."""
    pending = ""
    seen: list[str] = []
    for line in lines:
        seen.append(line.rstrip("\n"))
        if not pending.strip():
            pending = ""
            done = own(line, session, seen, lambda call: call())
            if done is LEAVE:
                return
            if done:
                continue
        pending += line
        if is_complete(pending):
            text, pending = pending, ""
            session.run(text)
    if pending.strip():
        session.run(pending)  # which says what is missing


def attempted(session: Session, call: Callable[[], None]) -> bool:
    """Shows what went wrong, in one or a few lines."""
    try:
        call()
        return True
    except ServerRefused as error:
        for entity in error.document.get("entities") or ():
            print("\n".join(lines_of(entity)))
        print(str(error))
    except (UserError, Unreachable) as error:
        print(str(error))
    except KeyboardInterrupt:
        print("^C")
    return False


def own(line: str, session: Session, history: Iterable[str], attempt: Attempt | None = None) -> object:
    """Truthy when it was a command of the prompt's own. `attempt` runs what may be refused, and shows why."""
    attempt = attempt or (lambda call: attempted(session, call))
    words = line.strip().rstrip(";").split(None, 1)
    if not words:
        return True
    name, rest = words[0].lower(), words[1].strip() if len(words) > 1 else ""
    if name in ("exit", "quit") and not rest:
        return LEAVE
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
            attempt(lambda: setattr(session, "server", SqlServer(rest.strip("'"))))
        print("\n".join(table(["Server"], [[session.server.url]])[1:]))
    elif name == "spool":
        _spool(rest.strip("'"), session)
    elif name == "run" and rest.lower().startswith("script"):
        path = rest[len("script") :].strip().strip("'")
        attempt(lambda: session.run_file(path))
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
