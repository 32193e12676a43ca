"""The SQL server's script: each statement runs once.

What a statement makes is looked for by its name. The same text is there already; another text is run when it says OR REPLACE, and
told otherwise. A query of INSERT INTO … SELECT is known by its text.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from penstock.client.errors import UserError
from penstock.sql.client.service import ServerRefused, SqlServer
from penstock.sql.parsing import statements as st
from penstock.sql.parsing.reading import SyntaxRefused
from penstock.sql.parsing.variables import parse_with
from penstock.stack.contents.outcome import Outcome
from penstock.stack.description.model import ScriptWish

MAY_STAND: Final = (
    st.CreateSource, st.CreateAsSelect, st.InsertInto, st.CreateType, st.CreateFunction,
    st.SetProperty, st.UnsetProperty, st.Define, st.Undefine,
)  # fmt: skip
"""As in a file of a server without a prompt (`sql.engine.headless`), whose engine is not loaded for it."""


def script_problem(text: str) -> str | None:
    """Why it cannot be a script that may run again: None when it can."""
    try:
        statements = parse_with(text, {}, scripts=False)
    except SyntaxRefused as error:
        return " ".join(str(error).split())
    for statement in statements:
        if not isinstance(statement, MAY_STAND):
            line = statement.place.line if statement.place is not None else 1
            first = " ".join(statement.text.split())[:60]
            return (
                f"line {line}: only CREATE, INSERT INTO … SELECT, SET and DEFINE may stand here, not: {first}"
            )
    return None


def apply_script(server: SqlServer, script: ScriptWish, outcome: Outcome, *, check: bool = False) -> None:
    """Unreachable. What comes behind a statement that is refused may need it, so it ends there."""
    properties: dict[str, str] = {}
    for statement in parse_with(script.text, {}, scripts=False):
        line = statement.place.line if statement.place is not None else 1
        try:
            _apply(server, statement, properties, outcome, check=check)
        except ServerRefused as error:
            outcome.say_failed(f"{script.path}:{line}: {error}")
            return
        except UserError as error:
            outcome.say_failed(f"{script.path}:{line}: {error}")
            return


def _apply(
    server: SqlServer, statement: st.Statement, properties: dict[str, str], outcome: Outcome, *, check: bool
) -> None:
    match statement:
        case st.SetProperty():
            properties[statement.name] = statement.value
            return
        case st.UnsetProperty():
            properties.pop(statement.name, None)
            return
        case st.Define() | st.Undefine():
            return  # parse_with has put the values in
        case st.CreateSource() | st.CreateAsSelect():
            what = f"{'table' if statement.kind.name == 'TABLE' else 'stream'} {statement.name}"
            there = _source_text(server, statement.name)
            if there is not None and not (statement.or_replace and not _is_same(there, statement.text)):
                _say_there(what, there, statement, outcome)
                return
        case st.InsertInto():
            what = f"the query into {statement.name}"
            if any(_is_same(text, statement.text) for text in _query_texts(server)):
                outcome.as_wished += 1
                return
        case st.CreateType():
            what = f"type {statement.name}"
            if statement.name.upper() in _types(server):
                outcome.as_wished += 1
                return
        case _:
            what = " ".join(statement.text.split())[:60]
    if check:
        outcome.say_done(f"{what} would be made")
        return
    try:
        server.statements(statement.text, properties, {}, None)
    except ServerRefused as error:
        if isinstance(statement, st.CreateFunction) and "already" in str(error):
            outcome.as_wished += 1
            return
        raise
    outcome.say_done(f"{what} was made")


def _say_there(what: str, there: str, statement: st.Statement, outcome: Outcome) -> None:
    if _is_same(there, statement.text):
        outcome.as_wished += 1
        return
    matcher = difflib.SequenceMatcher(None, _words(there), _words(statement.text), autojunk=False)
    _, first, _, second, _ = next(each for each in matcher.get_opcodes() if each[0] != "equal")
    was, shall = (
        " ".join(_words(there)[first : first + 6]),
        " ".join(_words(statement.text)[second : second + 6]),
    )
    outcome.say_differs(
        f"{what} is there and differs: it has '{was}…' where the script has '{shall}…'. "
        "CREATE OR REPLACE changes it, or DROP it first"
    )


def _source_text(server: SqlServer, name: str) -> str | None:
    """The statement that made a stream or table; None where there is none."""
    names = {
        str(each["name"]).upper()
        for entity in server.statements("SHOW STREAMS; SHOW TABLES;", {}, {}, None)
        for each in (*entity.get("streams", ()), *entity.get("tables", ()))
    }
    if name.upper() not in names:
        return None
    (entity,) = server.statements(f"DESCRIBE `{name}`;", {}, {}, None)
    description: Mapping[str, Any] = entity.get("sourceDescription") or {}
    return str(description.get("statement") or "")


def _query_texts(server: SqlServer) -> list[str]:
    return [
        str(each.get("queryString") or "")
        for entity in server.statements("SHOW QUERIES;", {}, {}, None)
        for each in entity.get("queries", ())
    ]


def _types(server: SqlServer) -> set[str]:
    return {
        str(name).upper()
        for entity in server.statements("SHOW TYPES;", {}, {}, None)
        for name in entity.get("types", {})
    }


def _words(text: str) -> list[str]:
    return text.strip().rstrip(";").split()


def _is_same(one: str, other: str) -> bool:
    return _words(one) == _words(other)
