"""Codecs for tests, from columns as they stand in a statement."""

from penstock.streams.formats.codecs import KeyCodec, ValueCodec, key_codec, value_codec
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, Window
from penstock.streams.plan.types import SqlType


def values(
    format_: str,
    *columns: tuple[str, SqlType],
    wrap: bool = True,
    registry=None,
    topic="t",
    **properties: str,
) -> ValueCodec:
    schema = Schema((), tuple(Column(name, type_) for name, type_ in columns))
    formats = Formats(Format("KAFKA"), Format(format_, tuple(properties.items())), wrap_value=wrap)
    return value_codec(schema, formats, topic=topic, registry=registry)


def keys(
    format_: str,
    *columns: tuple[str, SqlType],
    window: Window | None = None,
    registry=None,
    topic="t",
    **properties: str,
) -> KeyCodec:
    schema = Schema(tuple(Column(name, type_) for name, type_ in columns), ())
    formats = Formats(Format(format_, tuple(properties.items())), Format("JSON"))
    return key_codec(schema, formats, window=window, topic=topic, registry=registry)
