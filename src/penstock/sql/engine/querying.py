"""`/query` and `/query-stream`: a SELECT becomes a pull query (what is there now), or a push query (what comes), or PRINT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sql.analysis.legacy import as_push
from penstock.sql.analysis.queries import plan_push
from penstock.sql.engine.printing import PrintedLines
from penstock.sql.engine.pulling import pulled, quick_answer
from penstock.sql.engine.pushing import Push
from penstock.sql.engine.refusals import BAD_REQUEST, TOO_MANY_PUSH_QUERIES, SqlRefused
from penstock.sql.engine.refusing import refusal_of
from penstock.sql.engine.results import Results
from penstock.sql.engine.sessions import Session
from penstock.sql.parsing import statements as st
from penstock.sql.parsing.parser import SyntaxRefused
from penstock.sql.parsing.variables import parse_with
from penstock.streams.functions.scope import in_scope

if TYPE_CHECKING:
    from penstock.sql.engine.engine import Engine


def start(engine: Engine, text: str, session: Session) -> Results | PrintedLines:
    """SqlRefused before any row; what fails behind it is told in the results."""
    quick = quick_answer(engine, text, session)
    if quick is not None:
        return quick
    statement = _one(text, session)
    with in_scope(engine.state.functions.values()):
        return _started(engine, statement, session, text)


def _started(engine: Engine, statement: st.Statement, session: Session, text: str) -> Results | PrintedLines:
    try:
        if isinstance(statement, st.Print):
            return _printed(engine, statement)
        if isinstance(statement, st.Select):
            statement = as_push(statement, engine.world(session.properties))
            if statement.emit is None:
                return pulled(engine, statement, session, text)
            return _push(engine, statement, session)
    except Exception as error:
        raise refusal_of(error, statement.text) from error
    raise SqlRefused(
        "RUN SCRIPT cannot be used with the following statements: \n* PRINT\n* SELECT"
        if isinstance(statement, st.RunScript)
        else f"Statement type `{type(statement).__name__}' not supported for this resource",
        code=BAD_REQUEST,
    )


def _one(text: str, session: Session) -> st.Statement:
    try:
        found = parse_with(text, session.variables)
    except SyntaxRefused as error:
        raise SqlRefused(str(error), statement=text) from None
    for statement in found[:-1]:
        if isinstance(statement, st.SetProperty):
            session.properties[statement.name] = statement.value
        else:
            break
    if not found or any(not isinstance(each, st.SetProperty) for each in found[:-1]):
        raise SqlRefused(f"Expected exactly one KSQL statement; found {len(found)} instead", code=BAD_REQUEST)
    return found[-1]


def _printed(engine: Engine, statement: st.Print) -> PrintedLines:
    """PRINT holds a thread and a client as a push query does, so it counts as one."""
    query_id = _counted(engine, "print", statement.text)
    try:
        return PrintedLines(engine, statement, lambda: engine.open_pushes.pop(query_id, None))
    except BaseException:
        engine.open_pushes.pop(query_id, None)
        raise


def _push(engine: Engine, statement: st.Select, session: Session) -> Results:
    query_id = _counted(engine, statement.source.name, statement.text)
    try:
        planned = plan_push(statement, engine.world(session.properties), query_id)
        return Push(engine, planned, session.properties).results
    except BaseException:
        engine.open_pushes.pop(query_id, None)
        raise


def _counted(engine: Engine, name: str, text: str) -> str:
    """The id of one more query that stays open."""
    limit = engine.options["ksql.max.push.queries"]
    with engine.counting:
        if len(engine.open_pushes) >= limit:
            raise SqlRefused(
                f"Maximum number of push queries exceeded: {limit}. End one first, or raise ksql.max.push.queries.",
                code=TOO_MANY_PUSH_QUERIES,
            )
        query_id = engine.transient_id(name)
        engine.open_pushes[query_id] = text
    return query_id
