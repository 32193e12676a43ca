"""What `/ksql` answers with, in ksqlDB's shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.streams.plan.schema import WINDOW_BOUNDS, Schema
from penstock.streams.plan.sources import Source, SourceKind
from penstock.streams.plan.types import Kind, SqlType

Entity = dict[str, Any]


def entity(kind: str, statement: str, **fields: Any) -> Entity:
    return {"@type": kind, "statementText": statement, **fields, "warnings": []}


def current_status(
    statement: str, command_id: str, message: str, *, query_id: str | None = None, sequence: int = -1
) -> Entity:
    return entity(
        "currentStatus",
        statement,
        commandId=command_id,
        commandStatus=command_status("SUCCESS", message, query_id),
        commandSequenceNumber=sequence,
    )


def command_status(status: str, message: str, query_id: str | None = None) -> dict[str, Any]:
    return {"status": status, "message": message, "queryId": query_id}


def type_document(type_: SqlType) -> dict[str, Any]:
    """The `schema` of a field."""
    fields: list[dict[str, Any]] | None = None
    member: dict[str, Any] | None = None
    document: dict[str, Any] = {"type": type_.kind.value}
    if type_.kind is Kind.STRUCT:
        fields = [{"name": name, "schema": type_document(each)} for name, each in type_.fields]
    elif type_.element is not None:
        member = type_document(type_.element)
    document |= {"fields": fields, "memberSchema": member}
    if type_.kind is Kind.MAP and type_.key is not None:
        document["keySchema"] = type_document(type_.key)
    if type_.kind is Kind.DECIMAL:
        document["parameters"] = {"precision": type_.precision, "scale": type_.scale}
    return document


def fields(schema: Schema, *, is_windowed: bool = False) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": column.name, "schema": type_document(column.type), "type": "KEY"} for column in schema.key
    ]
    if is_windowed:
        found += [
            {"name": name, "schema": type_document(type_), "type": "KEY"}
            for name, type_ in WINDOW_BOUNDS.items()
        ]
    headers = dict(schema.headers)
    for column in schema.value:
        document: dict[str, Any] = {"name": column.name, "schema": type_document(column.type)}
        if column.name in headers:
            document["type"] = "HEADER"
            if headers[column.name] is not None:
                document["headerKey"] = headers[column.name]
        found.append(document)
    return found


def listed_source(source: Source, *, is_legacy: bool = False) -> dict[str, Any]:
    """`is_legacy`: as KSQL 5.1 told it."""
    if is_legacy:
        found = {
            "type": source.kind.value,
            "name": source.name,
            "topic": source.topic,
            "format": source.formats.value.name,
        }
        return (
            found if source.kind is SourceKind.STREAM else {**found, "isWindowed": source.window is not None}
        )
    return {
        "type": source.kind.value,
        "name": source.name,
        "topic": source.topic,
        "keyFormat": source.formats.key.name,
        "valueFormat": source.formats.value.name,
        "isWindowed": source.window is not None,
    }


def sources_entity(
    statement: str, kind: SourceKind, found: Iterable[Source], *, is_legacy: bool = False
) -> Entity:
    name = "streams" if kind is SourceKind.STREAM else "tables"
    return entity(
        name,
        statement,
        **{name: [listed_source(each, is_legacy=is_legacy) for each in found if each.kind is kind]},
    )


def source_description(
    source: Source,
    *,
    extended: bool,
    partitions: int,
    replication: int,
    read_queries: Sequence[Mapping[str, Any]],
    write_queries: Sequence[Mapping[str, Any]],
    constraints: Sequence[str] = (),
    offsets: Sequence[Mapping[str, Any]] = (),
    statistics: str = "",
) -> dict[str, Any]:
    return {
        "name": source.name,
        "windowType": None if source.window is None else source.window.kind.value,
        "readQueries": list(read_queries),
        "writeQueries": list(write_queries),
        "fields": fields(source.schema),
        "type": source.kind.value,
        "timestamp": "" if source.timestamp is None else source.timestamp.column,
        "statistics": statistics,
        "errorStats": "",
        "extended": extended,
        "keyFormat": source.formats.key.name,
        "valueFormat": source.formats.value.name,
        "topic": source.topic,
        "partitions": partitions,
        "replication": replication,
        "statement": source.statement,
        "queryOffsetSummaries": list(offsets),
        "sourceConstraints": list(constraints),
        "clusterStatistics": [],
        "clusterErrorStats": [],
    }
