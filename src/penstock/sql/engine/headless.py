"""A server with a file of statements (`ksql.queries.file`): it runs them at its start, and takes no others that change something.

What ran at an earlier start is known by its text and is not run again: its queries go on. A statement that is new in the file
runs. One that has gone from it stays as it is, until it is dropped by a server without the file.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from penstock.client.errors import UserError
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.executing import Execution
from penstock.sql.engine.options import QUERIES_FILE
from penstock.sql.engine.refusals import SqlRefused
from penstock.sql.engine.sessions import Session
from penstock.sql.parsing import statements as st
from penstock.sql.parsing.parser import SyntaxRefused, parse

log = logging.getLogger("penstock.sql")

MAY_STAND: Final = (
    st.CreateSource, st.CreateAsSelect, st.InsertInto, st.CreateType, st.CreateFunction,
    st.SetProperty, st.UnsetProperty, st.Define, st.Undefine,
)  # fmt: skip


def run_file(engine: Engine) -> None:
    """UserError says what is wrong with the file, and the server does not start."""
    path = engine.options[QUERIES_FILE]
    if not path:
        return
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{QUERIES_FILE}: {path} cannot be read: {error}") from None
    try:
        statements = parse(text)
    except SyntaxRefused as error:
        raise UserError(f"{QUERIES_FILE}: {path}: {error}") from None
    wrong = next((each for each in statements if not isinstance(each, MAY_STAND)), None)
    if wrong is not None:
        raise UserError(
            f"{QUERIES_FILE}: {path}: only CREATE, INSERT INTO … SELECT, SET and DEFINE may stand there, not: {wrong.text}"
        )
    execution = Execution(engine, Session(), is_file=True)
    for statement in statements:
        if statement.text in engine.commands_known:
            continue
        try:
            execution.run(statement.text)
        except SqlRefused as error:
            raise UserError(f"{QUERIES_FILE}: {path}: {error.message}\n  {statement.text}") from None
    log.info("The statements of %s run", path)
