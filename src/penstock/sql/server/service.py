"""The SQL server as a service in the frame of all HTTP services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

from penstock.client.errors import Refused, Unreachable, UserError
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.headless import run_file
from penstock.sql.engine.members import address_of
from penstock.sql.engine.refusals import GENERIC, SqlRefused
from penstock.sql.engine.refusing import refusal_of
from penstock.sql.server.content import KSQL
from penstock.sql.server.numbers import SqlNumbers
from penstock.sql.server.routes import SqlRoutes
from penstock.sql.server.sockets import QuerySocket
from penstock.web.errors import HttpError
from penstock.web.service import Running, WebService

THREADS: Final = 32
QUERY_THREADS: Final = 32
"""For the beginnings of queries. A pull query may read a whole topic for its first row; statements and inserts do not wait for
that."""


class SqlHttpError(HttpError):
    """A refusal in ksqlDB's form."""

    def __init__(self, refused: SqlRefused) -> None:
        super().__init__(refused.status, refused.message, error_code=refused.code)
        self._refused = refused

    def document(self) -> dict[str, object]:
        return self._refused.document()


def sql_service(engine: Engine) -> WebService:
    threads = ThreadPoolExecutor(THREADS, "penstock-sql")
    query_threads = ThreadPoolExecutor(QUERY_THREADS, "penstock-sql-query")

    async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(threads, function, *arguments)

    async def in_query_thread(function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(query_threads, function, *arguments)

    @asynccontextmanager
    async def lifecycle(running: Running) -> AsyncIterator[None]:
        engine.address = address_of(running.listeners[0], engine.options.web["host.name"])
        try:
            running.metrics.registry.register(SqlNumbers(engine))
            await in_thread(engine.start)
            await in_thread(run_file, engine)
            yield
        finally:
            await asyncio.to_thread(engine.close)
            threads.shutdown(wait=False, cancel_futures=True)
            query_threads.shutdown(wait=False, cancel_futures=True)

    routes = SqlRoutes(engine, in_thread, in_query_thread)
    return WebService(
        name="sql-server",
        title="Penstock SQL server",
        routes=routes.table(),
        has_http2=True,
        sockets={"/ws/query": QuerySocket(routes.started, _sql_refused)},
        content=KSQL,
        lifecycle=lifecycle,
        health=lambda: engine.problem,
        refusal=_refused,
        form=_form,
    )


def _form(error: HttpError) -> dict[str, object]:
    if isinstance(error, SqlHttpError):
        return error.document()
    return {"@type": GENERIC, "error_code": error.status * 100, "message": error.message}


def _refused(error: Exception) -> HttpError | None:
    found = _sql_refused(error)
    return None if found is None else SqlHttpError(found)


def _sql_refused(error: Exception) -> SqlRefused | None:
    if isinstance(error, SqlRefused):
        return error
    if isinstance(error, Refused | Unreachable | UserError):
        return refusal_of(error, "")
    return None
