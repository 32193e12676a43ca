"""What the SQL screens ask of a server of SQL: ours, or ksqlDB."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock.client.errors import Refused
from penstock.sql.client.rendering import type_text
from penstock.sql.client.service import ServerRefused, SqlServer

CATALOG: Final = "SHOW STREAMS; SHOW TABLES; SHOW QUERIES; SHOW QUERIES EXTENDED;"
PERSISTENT: Final = "PERSISTENT"


class Source(NamedTuple):
    name: str
    kind: str
    """STREAM or TABLE."""
    topic: str
    key_format: str
    value_format: str
    is_windowed: bool


class Query(NamedTuple):
    """`tier`, and why it is that, come from our server only."""

    id: str
    kind: str
    """PERSISTENT or PUSH."""
    state: str
    statement: str
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    topics: tuple[str, ...]
    tier: str = ""
    tier_reason: str = ""
    group: str = ""
    errors: tuple[tuple[int, str], ...] = ()
    """When (in ms) and what, the newest last."""


class Column(NamedTuple):
    name: str
    type: str
    role: str
    """KEY, HEADER or nothing."""


class Catalog(NamedTuple):
    sources: tuple[Source, ...]
    queries: tuple[Query, ...]

    def source(self, name: str) -> Source | None:
        return next((each for each in self.sources if each.name == name), None)


class SqlCatalog:
    """Safe to share between threads; each call blocks for a minute at most."""

    def __init__(self, url: str, *, authority: str | None = None) -> None:
        """`authority`: a PEM file, by which the certificate of https is checked; None: by what the system trusts."""
        self._url = url
        self._authority = authority

    def version(self) -> str:
        return str(self._server().info().get("version") or "")

    def catalog(self) -> Catalog:
        """Sources and queries, with one question."""
        streams, tables, listed, extended = self._ask(CATALOG)
        sources = [_source(one, "STREAM") for one in streams.get("streams") or ()]
        sources += [_source(one, "TABLE") for one in tables.get("tables") or ()]
        more = {str(one.get("id")): one for one in extended.get("queryDescriptions") or ()}
        queries = [_query(one, more.get(str(one["id"]), {})) for one in listed.get("queries") or ()]
        return Catalog(tuple(sorted(sources)), tuple(sorted(queries)))

    def columns(self, name: str) -> list[Column]:
        (found,) = self._ask(f"DESCRIBE {quoted(name)};")
        fields = (found.get("sourceDescription") or {}).get("fields") or ()
        return [
            Column(str(one["name"]), type_text(one.get("schema") or {}), str(one.get("type") or ""))
            for one in fields
        ]

    def functions(self) -> list[str]:
        (found,) = self._ask("SHOW FUNCTIONS;")
        return sorted({str(one["name"]).upper() for one in found.get("functions") or ()})

    def plan(self, query_id: str) -> str:
        (found,) = self._ask(f"EXPLAIN {query_id};")
        return str((found.get("queryDescription") or {}).get("executionPlan") or "")

    def terminate(self, query_id: str) -> str:
        """What the server says of it."""
        (found,) = self._ask(f"TERMINATE {query_id};")
        return str((found.get("commandStatus") or {}).get("message") or "")

    def drop(self, source: Source, *, with_topic: bool) -> str:
        (found,) = self._ask(
            f"DROP {source.kind} {quoted(source.name)}{' DELETE TOPIC' if with_topic else ''};"
        )
        return str((found.get("commandStatus") or {}).get("message") or "")

    def _ask(self, statements: str) -> Sequence[Mapping[str, Any]]:
        try:
            return self._server().statements(statements, {}, {}, None)
        except ServerRefused as error:
            raise Refused(str(error), code=int(error.document.get("error_code") or error.status)) from None

    def _server(self) -> SqlServer:
        return sql_server(self._url, self._authority)


def sql_server(url: str, authority: str | None) -> SqlServer:

    is_tls = url.startswith("https:")
    return SqlServer(url, context=ssl.create_default_context(cafile=authority) if is_tls else None)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _source(one: Mapping[str, Any], kind: str) -> Source:
    value_format = str(one.get("valueFormat") or one.get("format") or "")
    return Source(
        str(one["name"]),
        kind,
        str(one.get("topic") or ""),
        str(one.get("keyFormat") or "KAFKA"),
        value_format,
        bool(one.get("isWindowed")),
    )


def _query(one: Mapping[str, Any], more: Mapping[str, Any]) -> Query:
    counts = one.get("statusCount") or {}
    state = str(one.get("state") or more.get("state") or "/".join(map(str, counts)))
    errors = [
        (int(each.get("timestamp") or 0), str(each.get("errorMessage") or ""))
        for each in more.get("queryErrors") or ()
    ]
    return Query(
        id=str(one["id"]),
        kind=str(one.get("queryType") or PERSISTENT),
        state=state,
        statement=str(one.get("queryString") or ""),
        sources=tuple(map(str, more.get("sources") or ())),
        sinks=tuple(map(str, one.get("sinks") or ())),
        topics=tuple(map(str, one.get("sinkKafkaTopics") or ())),
        tier=str(more.get("tier") or ""),
        tier_reason=str(more.get("tierReason") or ""),
        group=str(more.get("consumerGroupId") or ""),
        errors=tuple(sorted(errors)),
    )  # fmt: skip
