"""Schemas, values and records of ours as Kafka's JsonConverter tells them, and back: what an oracle is asked with."""

from __future__ import annotations

import base64
import datetime as dt
from typing import Any

from penstock.connect.data import Schema, Struct, Type
from penstock.connect.data.floats import to_single
from penstock.connect.data.logical import logical_of
from penstock.connect.records import ConnectRecord, Header, SinkRecord, SourceRecord

Json = dict[str, Any]
NULL: Json = {"schema": None, "payload": None}
DAY_MS = 86_400_000


def schema_from(said: Json | None) -> Schema | None:
    if said is None:
        return None
    inner: Json = {}
    if "fields" in said:
        inner["fields"] = [(field["field"], schema_from(field)) for field in said["fields"]]
    if "items" in said or said["type"] == "map":
        inner["items"] = schema_from(said.get("items") or said.get("values"))
        inner["keys"] = schema_from(said.get("keys"))
    made = Schema(
        Type(said["type"]),
        is_optional=said.get("optional", False),
        name=said.get("name"),
        version=said.get("version"),
        doc=said.get("doc"),
        parameters=said.get("parameters"),
        **inner,
    )
    if said.get("default") is not None:
        made.default = value_from(made, said["default"])
    return made


def value_from(schema: Schema | None, payload: Any) -> Any:
    if payload is None or schema is None:
        return payload
    if schema.type is Type.STRUCT:
        values = [value_from(field.schema, payload.get(field.name)) for field in schema.fields]
        return Struct.trusted(schema, values)
    if schema.type is Type.ARRAY:
        return [value_from(schema.items, each) for each in payload]
    if schema.type is Type.MAP:
        return {key: value_from(schema.items, each) for key, each in payload.items()}
    if schema.type is Type.BYTES:
        payload = base64.b64decode(payload)
    if schema.type is Type.FLOAT32:
        return to_single(payload)
    logical = logical_of(schema)
    return payload if logical is None else logical.from_base(schema, payload)


def schema_said(schema: Schema | None) -> Json | None:
    if schema is None:
        return None
    said: Json = {"type": str(schema.type), "optional": schema.is_optional}
    more = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    said |= {name: value for name, value in more.items() if value is not None}
    if schema.parameters:
        said["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        said["default"] = payload_said(schema, schema.default)
    if schema.type is Type.STRUCT:
        said["fields"] = [
            {"field": field.name, **(schema_said(field.schema) or {})} for field in schema.fields
        ]
    elif schema.type is Type.ARRAY:
        said["items"] = schema_said(schema.items)
    elif schema.type is Type.MAP:
        said |= {"keys": schema_said(schema.keys), "values": schema_said(schema.items)}
    return said


def payload_said(schema: Schema | None, value: Any) -> Any:
    if value is None:
        return None
    if schema is None:
        return plain_said(value)
    logical = logical_of(schema)
    if logical is not None:
        value = logical.to_base(schema, value)
    if isinstance(value, Struct):
        return {
            field.name: payload_said(field.schema, each)
            for field, each in zip(value.schema.fields, value.values, strict=True)
        }
    if isinstance(value, list):
        return [payload_said(schema.items, each) for each in value]
    if isinstance(value, dict):
        return {key: payload_said(schema.items, each) for key, each in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def plain_said(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {key: plain_said(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain_said(each) for each in value]
    if isinstance(value, dt.datetime):
        return {"time": (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)}
    if isinstance(value, dt.date):
        return {"time": (value - dt.date(1970, 1, 1)).days * DAY_MS}
    if isinstance(value, dt.time):
        ms = ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
        return {"time": ms}
    return value


def record_from(said: Json) -> ConnectRecord:
    parts = {name: schema_from(said.get(name, NULL)["schema"]) for name in ("key", "value")}
    values = {name: value_from(parts[name], said.get(name, NULL)["payload"]) for name in parts}
    more: Json = {
        "key": values["key"],
        "key_schema": parts["key"],
        "value_schema": parts["value"],
        "timestamp_ms": said.get("timestamp"),
        "headers": [
            Header(
                each["name"],
                value_from(schema_from(each["schema"]), each["payload"]),
                schema_from(each["schema"]),
            )
            for each in said.get("headers", ())
        ],
    }
    if said.get("kind") == "source":
        return SourceRecord(
            None, None, said["topic"], values["value"], partition=said.get("partition"), **more
        )
    return SinkRecord(said["topic"], said.get("partition", 0), said.get("offset", 0), values["value"], **more)


def record_said(record: ConnectRecord) -> Json:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "key": {
            "schema": schema_said(record.key_schema),
            "payload": payload_said(record.key_schema, record.key),
        },
        "value": {
            "schema": schema_said(record.value_schema),
            "payload": payload_said(record.value_schema, record.value),
        },
        "timestamp": record.timestamp_ms,
        "headers": [
            {
                "name": each.name,
                "schema": schema_said(each.schema),
                "payload": payload_said(each.schema, each.value),
            }
            for each in record.headers
        ],
    }
