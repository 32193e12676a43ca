"""A pull query of a client: checked by analysis, answered by `pull.PullQueries`, given as results.

A view first catches up with what its topic has when the query comes, so a client sees what was written before it asked.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from penstock.client.errors import Refused, Unreachable, UserError
from penstock.sql.analysis.pulling import Lookup, analyze_pull
from penstock.sql.engine.callers import READ, Caller
from penstock.sql.engine.pull import PullQueries
from penstock.sql.engine.quick_lookups import QuickLookup
from penstock.sql.engine.results import Header, ResultRow, Results
from penstock.sql.engine.sessions import Session
from penstock.sql.engine.topic_reading import Stopped
from penstock.sql.engine.views import CATCH_UP_S, TableView
from penstock.sql.parsing import statements as st
from penstock.streams.kernel.records import Row
from penstock.streams.plan.expressions import ColumnRef
from penstock.streams.plan.schema import WINDOW_BOUNDS
from penstock.streams.plan.sources import Source, SourceKind

if TYPE_CHECKING:
    from penstock.sql.engine.engine import Engine

log = logging.getLogger("penstock.sql")

LOOKED_UP_AT_ONCE: Final = 100
"""Rows of a lookup by keys that are taken before the answer begins."""


def quick_answer(engine: Engine, text: str, session: Session) -> Results | None:
    """To a lookup that differs from an earlier one in its key only. None: it does not, or it needs a closer look."""
    found = engine.quick_lookups.find(text, session.properties, engine.state)
    if found is None:
        return None
    lookup, key = found
    try:
        view = _caught_up(engine, lookup.source, engine.caller)
        rows = [] if view is None else view.windows(key)
    except UserError:
        return None  # the long way says why
    return None if view is None else _quick_results(engine, lookup, rows)


async def answer_at_once(engine: Engine, text: str, session: Session) -> Results | None:
    """The same on the event loop, without a thread for each: for a view that is there. It reads a page or two of a file that is
    in memory as a rule. None: `querying.start` finds out."""
    if engine.callers.passes_on:
        return None  # whether this caller may is asked in a thread
    found = engine.quick_lookups.find(text, session.properties, engine.state)
    if found is None:
        return None
    lookup, key = found
    view = engine.views.ready(lookup.source)
    if view is None:
        return None
    try:
        await view.catching_up.caught_up()
        rows = view.windows(key)
    except (UserError, Refused, Unreachable):
        return None  # the long way says why
    return _quick_results(engine, lookup, rows)


def _quick_results(engine: Engine, lookup: QuickLookup, rows: list[Row]) -> Results | None:
    room = engine.options["ksql.query.push.buffer.rows"]
    if len(rows) > room:
        return None
    results = Results(lookup.header(engine.transient_id(lookup.source.name)), bound=room)
    for row in rows[: lookup.limit]:
        results.put(ResultRow(lookup.project(row)))
    results.end()
    return results


def pulled(engine: Engine, statement: st.Select, session: Session, text: str) -> Results:
    """`text` is what the client sent; the statement is the last one in it."""
    query_id = engine.transient_id(
        statement.source.alias if statement.source.query else statement.source.name
    )
    planned = analyze_pull(statement, engine.world(session.properties), query_id)
    if planned.lookup is not None:
        header = Header(query_id, planned.columns(), _key_names(planned.lookup))
    else:
        header = Header(query_id, planned.columns())
    if text.strip() == statement.text.strip():
        engine.quick_lookups.remember(text, session.properties, engine.state, planned, header)
    room = engine.options["ksql.query.push.buffer.rows"]
    results = Results(header, bound=room)
    caller = engine.caller
    pulls = PullQueries(
        caller.connection,
        lambda source: _caught_up(engine, source, caller),
        engine.schemas,
        engine.options["ksql.query.pull.max.rows"],
    )
    rows = pulls.rows(planned, should_stop=lambda: results.is_closed)
    if planned.lookup is not None and planned.lookup.keys is not None:
        most = min(LOOKED_UP_AT_ONCE, room)
        head = list(islice(rows, most))  # nearly always all of them: no thread is worth while
        if len(head) < most:
            for row in head:
                results.put(ResultRow(row))
            results.end()
            return results
        rows = _with_head(head, rows)
    first = next(rows, None)  # what cannot be answered is refused before the header
    threading.Thread(
        target=_give, args=(results, first, rows), name=f"penstock {query_id}", daemon=True
    ).start()
    return results


def _with_head(
    head: list[tuple[Any, ...]], rest: Generator[tuple[Any, ...], None, None]
) -> Generator[tuple[Any, ...], None, None]:
    try:
        yield from head
        yield from rest
    finally:
        rest.close()


def _give(
    results: Results, row: tuple[Any, ...] | None, rows: Generator[tuple[Any, ...], None, None]
) -> None:
    try:
        while row is not None:
            if not results.put(ResultRow(row)):
                return
            row = next(rows, None)
        results.end()
    except Stopped:
        results.end()
    except (UserError, Refused, Unreachable) as error:
        results.end(error=str(error))
    except Exception as error:
        log.exception("The pull query %s has failed", results.header.query_id)
        results.end(error=str(error))
    finally:
        rows.close()


def _caught_up(engine: Engine, source: Source, caller: Caller) -> TableView | None:
    """None: it has no view, and is read from its topic."""
    if source.kind is not SourceKind.TABLE:
        return None
    caller.check_allowed(source.topic, READ)
    view = engine.views.of(source)
    view.wait_ready(CATCH_UP_S)
    view.catch_up(CATCH_UP_S)
    return view


def _key_names(lookup: Lookup) -> frozenset[str]:
    keys = {column.name for column in lookup.source.schema.key}
    if lookup.source.window is not None:
        keys |= WINDOW_BOUNDS.keys()
    return frozenset(
        column.name
        for column, item in zip(lookup.schema.value, lookup.items, strict=True)
        if isinstance(item, ColumnRef) and item.name in keys
    )
