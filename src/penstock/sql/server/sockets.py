"""`/ws/query?request={"ksql": …}`: a query or PRINT through a websocket, as ksqlDB does it.

The first message of a query has its columns, each other one a row; those of PRINT are lines. At the end there is
`{"error": "done"}` and the code 1000; what went wrong is told in the same place, with another code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from penstock.sql.engine.entities import fields
from penstock.sql.engine.printing import PrintedLines
from penstock.sql.engine.refusals import SqlRefused
from penstock.sql.engine.results import Results
from penstock.sql.server.json_rows import row_writer
from penstock.web.call import Call
from penstock.web.sockets import Socket

DONE, UNSUPPORTED, FAILED = 1000, 1003, 1011
VERSION: Final = "1"

Start = Callable[[Call, str, dict[str, Any]], Awaitable[Results | PrintedLines]]


class QuerySocket:
    """`start` begins a query: SqlRefused, and the errors that `refused` turns into one."""

    def __init__(self, start: Start, refused: Callable[[Exception], SqlRefused | None]) -> None:
        self._start = start
        self._refused = refused

    async def __call__(self, call: Call, socket: Socket) -> None:
        await socket.accept()
        try:
            document = _request(call)
            found = await self._start(call, document["ksql"], document)
        except Exception as error:
            refused = self._refused(error)
            if refused is None:
                raise
            await _end(socket, UNSUPPORTED, refused.message)
            return
        watching = asyncio.create_task(_close_when_left(socket, found))
        try:
            if isinstance(found, PrintedLines):
                async for chunk in found.lines():
                    for line in chunk.decode(errors="replace").splitlines():
                        await socket.send(orjson.dumps(line).decode())
                await _end(socket, DONE, "done")
            else:
                await _give(socket, found)
        finally:
            watching.cancel()
            found.close()


async def _give(socket: Socket, results: Results) -> None:
    schema = results.header.schema
    await socket.send(orjson.dumps(fields(schema)).decode())
    write = row_writer([column.type for column in (*schema.key, *schema.value)])
    while rows := await results.take():
        for row in rows:
            columns: dict[str, Any] = {"columns": write(row.values)}
            if row.is_tombstone:
                columns["tombstone"] = True
            await socket.send(orjson.dumps({"row": columns}).decode())
    if results.error is not None:
        await _end(socket, FAILED, results.error)
    else:
        await _end(socket, DONE, "done")


async def _end(socket: Socket, code: int, message: str) -> None:
    await socket.send(orjson.dumps({"error": message}).decode())
    await socket.close(code, message)


async def _close_when_left(socket: Socket, found: Results | PrintedLines) -> None:
    await socket.left()
    found.close()


def _request(call: Call) -> dict[str, Any]:
    version = call.query("version")
    if version not in (None, VERSION):
        raise SqlRefused(f"Received invalid api version: {version}")
    given = call.query("request")
    if not given:
        raise SqlRefused("Error parsing request: missing request parameter")
    try:
        document = orjson.loads(given)
    except orjson.JSONDecodeError as error:
        raise SqlRefused(f"Error parsing request: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("ksql"), str) or not document["ksql"]:
        raise SqlRefused('Error parsing request: "ksql" field of "request" must be populated')
    return document
