"""The paths of ksqlDB's REST API."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NoReturn, TypeVar

import orjson

import penstock
from penstock.client.errors import Unreachable
from penstock.sql.engine import querying
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.entities import command_status
from penstock.sql.engine.executing import Execution
from penstock.sql.engine.inserting import RowInserter
from penstock.sql.engine.members import cluster_status
from penstock.sql.engine.printing import PrintedLines
from penstock.sql.engine.pulling import answer_at_once
from penstock.sql.engine.refusals import BAD_REQUEST, NOT_FOUND, SERVER_ERROR, SqlRefused
from penstock.sql.engine.results import Results
from penstock.sql.engine.sessions import check_property, session
from penstock.sql.server.content import DELIMITED, KSQL, QUERY_STREAM, V1
from penstock.sql.server.framing import (
    ArrayFraming,
    DelimitedFraming,
    Framing,
    JsonArrayFraming,
    LegacyFraming,
    at_once,
    framed,
)
from penstock.web.call import Answer, Call, ClientGone, Stream
from penstock.web.routes import Routes

log = logging.getLogger("penstock.sql")

T = TypeVar("T")
MAX_STATEMENTS_CHARS: Final = 4 << 20
RUNNING: Final = "RUNNING"
APPLIED_TIMEOUT_S: Final = 30.0
APPLIED_POLL_S: Final = 0.02


class SqlRoutes:
    def __init__(
        self, engine: Engine, in_thread: Callable[..., Any], in_query_thread: Callable[..., Any]
    ) -> None:
        self._engine = engine
        self._in_thread, self._in_query_thread = in_thread, in_query_thread
        self._open: dict[str, Results] = {}

    def table(self) -> Routes:
        routes = Routes()
        routes.add("GET", "/", self._root, "Leads to /info.", content=KSQL, is_hidden=True)
        routes.add("GET", "/info", self._info, "Version, cluster and service.", content=KSQL)
        routes.add(
            "GET",
            "/healthcheck",
            self._healthcheck,
            "Whether all parts can work.",
            content=KSQL,
            is_open=True,
        )
        routes.add("POST", "/ksql", self._ksql, "Statements, all but SELECT and PRINT.", content=KSQL,
                   body="{ksql, streamsProperties, sessionVariables, commandSequenceNumber}", is_long=True)  # fmt: skip
        routes.add("POST", "/query", self._query, "A push or pull query, or PRINT.", content=KSQL,
                   body="{ksql, streamsProperties}", is_long=True)  # fmt: skip
        routes.add("POST", "/query-stream", self._query_stream, "A push or pull query, as lines.",
                   content=QUERY_STREAM, body="{sql, properties, sessionVariables}", is_long=True)  # fmt: skip
        routes.add(
            "POST",
            "/close-query",
            self._close_query,
            "Ends a push query.",
            content=QUERY_STREAM,
            body="{queryId}",
        )
        routes.add("POST", "/inserts-stream", self._inserts, "Rows for a stream, an object a line.",
                   content=QUERY_STREAM, body="{target}, then rows", is_long=True)  # fmt: skip
        routes.add("GET", "/status", self._statuses, "What became of commands.", content=KSQL)
        routes.add(
            "GET", "/status/{type}/{entity}/{action}", self._status, "What became of a command.", content=KSQL
        )
        routes.add("POST", "/ksql/terminate", self._terminate, "Ends all queries and forgets all sources.",
                   content=KSQL, body="{deleteTopicList}", is_long=True)  # fmt: skip
        routes.add(
            "GET", "/clusterStatus", self._cluster_status, "The servers of this service.", content=KSQL
        )
        for path in ("/heartbeat", "/lag"):
            routes.add("POST", path, self._heartbeat, "Taken, and without effect.", content=KSQL,
                       body="{hostInfo, …}", is_hidden=True)  # fmt: skip
        routes.add("GET", "/is_valid_property/{property}", self._is_valid_property,
                   "Whether a statement may set it.", content=KSQL)  # fmt: skip
        routes.add("GET", "/v1/metadata", self._metadata, "The cluster's id.", content=KSQL)
        routes.add("GET", "/v1/metadata/id", self._metadata_id, "The server's id.", content=KSQL)
        for name in ("ready", "live"):
            routes.add(
                "GET", f"/chc/{name}", self._healthcheck, "Whether it can work.", content=KSQL, is_open=True
            )
        return routes

    async def _root(self, call: Call) -> Answer:
        return Answer(status=307, headers={"Location": "/info"})

    async def _info(self, call: Call) -> object:
        info = {
            "version": penstock.__version__,
            "kafkaClusterId": self._engine.cluster_id,
            "ksqlServiceId": self._engine.options.service_id,
            "serverStatus": RUNNING,
        }
        return {"KsqlServerInfo": info}

    async def _healthcheck(self, call: Call) -> object:
        is_well = self._engine.problem is None
        parts = {name: {"isHealthy": is_well} for name in ("metastore", "kafka", "commandRunner")}
        document = {"isHealthy": is_well, "details": parts, "serverState": "READY"}
        return Answer.json(document, status=200 if is_well else 503)

    async def _as_caller(
        self, in_thread: Callable[..., Any], call: Call, work: Callable[..., Any], *given: Any
    ) -> Any:
        """In a thread, as the one who asks where logins are passed on."""
        return await in_thread(self._engine.callers.run_as, call.header("authorization"), work, *given)

    # ------------------------------------------------------------------ statements

    async def _ksql(self, call: Call) -> object:
        document = await _object(call)
        text = _text(document, "ksql")
        wanted = document.get("commandSequenceNumber")
        if wanted is not None and not isinstance(wanted, int):
            _bad("commandSequenceNumber must be a number")
        about = session(_properties(document, "streamsProperties"), _properties(document, "sessionVariables"))
        if isinstance(wanted, int):
            await self._applied(wanted, call)
        return await self._as_caller(self._in_thread, call, Execution(self._engine, about).run, text)

    async def _applied(self, wanted: int, call: Call) -> None:
        """A client that was answered by another server asks for what it knows. It holds no thread, whatever number it says."""
        log, deadline_s = self._engine.log, time.monotonic() + APPLIED_TIMEOUT_S
        if log.next_offset > wanted:
            return
        leaving = asyncio.create_task(call.left())
        try:
            while log.next_offset <= wanted:
                if leaving.done():
                    raise ClientGone
                if time.monotonic() > deadline_s:
                    raise Unreachable(f"Timed out while waiting for the command {wanted} to be applied.")
                await asyncio.sleep(APPLIED_POLL_S)
        finally:
            leaving.cancel()

    async def _statuses(self, call: Call) -> object:
        return {
            "commandStatuses": {name: each["status"] for name, each in list(self._engine.statuses.items())}
        }

    async def _status(self, call: Call) -> object:
        name = "/".join(call[part].strip("`") for part in ("type", "entity", "action"))
        found = self._engine.statuses.get(name)
        if found is None:
            raise SqlRefused("Command not found", code=NOT_FOUND)
        return found

    async def _terminate(self, call: Call) -> object:
        document = await _object(call)
        patterns = document.get("deleteTopicList") or []
        if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
            _bad("deleteTopicList must be a list of names and patterns")
        message = await self._as_caller(self._in_thread, call, self._engine.terminate, patterns)
        return [
            {
                "@type": "currentStatus",
                "statementText": "TERMINATE CLUSTER;",
                "commandId": "terminate/CLUSTER/execute",
                "commandStatus": command_status("SUCCESS", message),
                "commandSequenceNumber": self._engine.log.next_offset - 1,
                "warnings": [],
            }
        ]

    async def _is_valid_property(self, call: Call) -> object:
        check_property(call["property"])
        return True

    async def _cluster_status(self, call: Call) -> object:
        return {"clusterStatus": await self._in_thread(cluster_status, self._engine)}

    async def _heartbeat(self, call: Call) -> object:
        """Servers of ksqlDB tell one another so; ours find one another by a group, and take it in."""
        await _object(call)
        return {"isOk": True}

    async def _metadata(self, call: Call) -> object:
        scope = {"path": [], "clusters": {"kafka-cluster": self._engine.cluster_id,
                                          "ksql-cluster": self._engine.options.service_id}}  # fmt: skip
        return {"id": "", "scope": scope}

    async def _metadata_id(self, call: Call) -> object:
        return {"id": ""} | (await self._metadata(call))  # type: ignore[operator]

    # ------------------------------------------------------------------ queries

    async def _query(self, call: Call) -> object:
        document = await _object(call)
        text = _text(document, "ksql")
        found = await self._started(call, text, document, "streamsProperties")
        if isinstance(found, PrintedLines):
            return Stream(_until_gone(call, found.lines(), found.close), content_type="application/json")
        is_legacy = self._engine.options["ksql.query.legacy.format"]
        framing: Framing = LegacyFraming() if is_legacy else ArrayFraming()
        return self._stream(call, found, framing, V1)

    async def _query_stream(self, call: Call) -> object:
        document = await _object(call)
        text = _text(document, "sql")
        named = "properties" if "properties" in document else "streamsProperties"
        found = await self._started(call, text, document, named)
        if isinstance(found, PrintedLines):
            if call.answer_type != DELIMITED:
                found.close()
                _bad(f"PRINT is answered as {DELIMITED} only", code=40600)
            return Stream(_until_gone(call, found.lines(), found.close), content_type=DELIMITED)
        framing: Framing = (
            DelimitedFraming() if call.answer_type == DELIMITED
            else ArrayFraming() if call.answer_type == V1 else JsonArrayFraming()
        )  # fmt: skip
        return self._stream(call, found, framing, call.answer_type)

    async def _started(
        self, call: Call, text: str, document: dict[str, Any], named: str
    ) -> Results | PrintedLines:
        about = session(_properties(document, named), _properties(document, "sessionVariables"))
        quick = await answer_at_once(self._engine, text, about)
        if quick is not None:
            return quick
        found: Results | PrintedLines = await self._as_caller(
            self._in_query_thread, call, querying.start, self._engine, text, about
        )
        return found

    async def started(self, call: Call, text: str, document: dict[str, Any]) -> Results | PrintedLines:
        """Of a websocket."""
        return await self._started(call, text, document, "streamsProperties")

    def _stream(self, call: Call, results: Results, framing: Framing, content_type: str) -> Stream | Answer:
        whole = at_once(results, framing)
        if whole is not None:
            return Answer(whole, content_type=content_type)
        self._open[results.header.query_id] = results
        return Stream(
            _until_gone(call, self._counted(results, framing), results.close), content_type=content_type
        )

    async def _counted(self, results: Results, framing: Framing) -> AsyncIterator[bytes]:
        try:
            async for chunk in framed(results, framing):
                if chunk:
                    yield chunk
        finally:
            self._open.pop(results.header.query_id, None)

    async def _close_query(self, call: Call) -> object:
        document = await _object(call)
        query_id = _text(document, "queryId")
        found = self._open.pop(query_id, None)
        if found is None:
            _bad(f"No query with id {query_id}")
        found.close()
        return Answer(status=200)

    # ------------------------------------------------------------------ inserts

    async def _inserts(self, call: Call) -> object:
        lines = _lines(call)
        try:
            first = orjson.loads(await anext(lines))
            target = first["target"]
        except (StopAsyncIteration, orjson.JSONDecodeError, KeyError, TypeError):
            _bad('The first line must be {"target": "STREAM"}')
        inserter: RowInserter = await self._as_caller(
            self._in_thread, call, RowInserter, self._engine, str(target), first.get("properties")
        )
        return Stream(self._acknowledged(call, lines, inserter), content_type=call.answer_type)

    async def _acknowledged(
        self, call: Call, lines: AsyncIterator[bytes], inserter: RowInserter
    ) -> AsyncIterator[bytes]:
        number = 0
        async for line in lines:
            try:
                await self._as_caller(self._in_thread, call, inserter.insert, orjson.loads(line))
                yield orjson.dumps({"status": "ok", "seq": number}) + b"\n"
            except Exception as error:
                yield orjson.dumps(_not_inserted(error, number)) + b"\n"
                return
            number += 1


def _not_inserted(error: Exception, number: int) -> dict[str, Any]:
    """The answer has begun, so a bug, too, is told in it."""
    code, message = SERVER_ERROR, str(error)
    if isinstance(error, SqlRefused):
        code = error.code
    elif isinstance(error, orjson.JSONDecodeError):
        code = BAD_REQUEST
    else:
        log.error("A bug at a row of /inserts-stream", exc_info=error)
        message = "Internal Server Error"
    return {"status": "error", "seq": number, "error_code": code, "message": message}


async def _until_gone(
    call: Call, chunks: AsyncIterator[bytes], close: Callable[[], None]
) -> AsyncIterator[bytes]:
    """The chunks, until the client leaves: then the query behind them is closed."""

    async def watch() -> None:
        await call.left()
        close()

    watching = asyncio.create_task(watch())
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        watching.cancel()
        close()


async def _lines(call: Call) -> AsyncIterator[bytes]:
    rest = b""
    try:
        async for chunk in call.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    yield line
    except ClientGone:
        return
    if rest.strip():
        yield rest


async def _object(call: Call) -> dict[str, Any]:
    data = await call.body()
    try:
        document = orjson.loads(data) if data else {}
    except orjson.JSONDecodeError as error:
        _bad(f"Malformed JSON: {error}")
    if not isinstance(document, dict):
        _bad("The body must be a JSON object")
    return document


def _text(document: dict[str, Any], name: str) -> str:
    found = document.get(name)
    if not isinstance(found, str):
        _bad(f'Missing "{name}", which must be a text')
    if len(found) > MAX_STATEMENTS_CHARS:
        _bad(f'"{name}" is longer than {MAX_STATEMENTS_CHARS} characters')
    return found


def _properties(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name) or {}
    if not isinstance(found, dict):
        _bad(f'"{name}" must be an object')
    return found


def _bad(message: str, *, code: int = BAD_REQUEST) -> NoReturn:
    raise SqlRefused(message, code=code)
