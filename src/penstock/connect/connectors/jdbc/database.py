"""A connection to the database, which is opened again when it was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import NullPool, create_engine, event
from sqlalchemy.engine import URL, Connection, Dialect
from sqlalchemy.exc import SQLAlchemyError

from penstock.connect.connectors.jdbc.column_types import MYSQL, POSTGRESQL, SQLITE
from penstock.connect.connectors.jdbc.connection_settings import NEVER
from penstock.connect.connectors.jdbc.failures import failure_of
from penstock.connect.connectors.jdbc.urls import url_of
from penstock.connect.errors import ConnectError, InvalidConfig

_FAMILY: Final = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL, "sqlite": SQLITE}


class Database:
    """`on_open` is called with each new connection: what was kept of the old one is void."""

    def __init__(self, values: Any) -> None:
        self.url = url_of(
            values["connection.url"],
            values["connection.user"],
            values["connection.password"],
            values["dialect.name"],
        )
        self.family = _FAMILY[self.url.get_backend_name()]
        self.quotes = values["quote.sql.identifiers"].lower() != NEVER
        self.on_open: list[Callable[[Connection], None]] = []
        try:
            self._engine = create_engine(
                self.url,
                poolclass=NullPool,
                connect_args=_arguments(self.url, values["connection.timeout.ms"] / 1000),
            )
        except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
            raise InvalidConfig(f"connection.url: {error}") from None
        if self.family == SQLITE:
            event.listen(self._engine, "connect", _leave_transactions)
            event.listen(self._engine, "begin", _begin)
        self._connection: Connection | None = None

    @property
    def dialect(self) -> Dialect:
        return self._engine.dialect

    @property
    def name(self) -> str:
        """For messages: without the login."""
        url = self.url
        if url.host is None:
            return f"{url.get_backend_name()}:{url.database}"
        return (
            f"{url.get_backend_name()}://{url.host}{f':{url.port}' if url.port else ''}/{url.database or ''}"
        )

    def connection(self) -> Connection:
        """RetriableError, Hopeless."""
        if self._connection is None or self._connection.invalidated or self._connection.closed:
            self.close()
            with self.failures("cannot connect"):
                self._connection = self._engine.connect()
                for call in self.on_open:
                    call(self._connection)
        return self._connection

    @contextmanager
    def failures(self, doing: str) -> Iterator[None]:
        """Errors of drivers become a task's."""
        try:
            yield
        except ConnectError:
            raise
        except Exception as error:
            raise failure_of(error, f"{self.name}: {doing}") from error

    def quote(self, name: str) -> str:
        if not self.quotes:
            return name
        mark = "`" if self.family == MYSQL else '"'
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"

    def rollback(self) -> None:
        """Whatever state it is in; a connection that cannot is given up."""
        if self._connection is not None:
            try:
                self._connection.rollback()
            except Exception:
                self.close()

    def abandon(self) -> None:
        """Hangs up in the middle of an answer."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:
                connection.invalidate()


def _arguments(url: URL, timeout_s: float) -> dict[str, Any]:
    backend = url.get_backend_name()
    if backend == "postgresql":
        given = {} if "connect_timeout" in url.query else {"connect_timeout": max(2, int(timeout_s))}
        # A server that has gone without a word is noticed.
        return {**given, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
    if backend == "sqlite":
        return {"timeout": timeout_s}
    given = {} if "connect_timeout" in url.query else {"connect_timeout": max(1, int(timeout_s))}
    return {**given, "charset": "utf8mb4"}


def _leave_transactions(connection: Any, _: Any) -> None:
    """To us: Python's driver begins them late, and would end them where a table is made."""
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
