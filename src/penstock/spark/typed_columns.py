"""Keys and values with the id of a schema, as columns of the reader's schema. The driver looks it up, once for a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.arrow.registry_schemas import FORMATS, Registry, SchemaText, registered
from penstock.client.errors import Refused, UserError
from penstock.schemas.subject_names import subject_of
from penstock.spark.failures import BadOption
from penstock.spark.internals.arrow_types import spark_type
from penstock.spark.registry_options import KEY, VALUE, ReadFormat

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType

    from penstock.spark.options import Subscription


class TypedColumn(NamedTuple):
    """What tasks are told about one of the columns `key` and `value`."""

    name: str
    registry: Registry
    schema: SchemaText
    fails_fast: bool
    raw_name: str | None
    error_name: str | None

    def arrow_type(self) -> pa.DataType:
        # Here: the driver of a query without typed columns needs no pyarrow.
        from penstock.arrow.registry_values import column_type

        return column_type(self.schema)

    def spark_type(self) -> DataType:
        return spark_type(self.arrow_type())


def typed_columns(formats: tuple[ReadFormat, ...], subscription: Subscription) -> tuple[TypedColumn, ...]:
    """Asks the registry."""
    return tuple(
        TypedColumn(
            each.name,
            each.registry,
            _reader_schema(each, subscription)._replace(message=each.message),
            each.fails_fast,
            f"raw{each.name.capitalize()}" if each.include_raw else None,
            f"{each.name}Error" if each.include_error else None,
        )
        for each in formats
    )


def _reader_schema(each: ReadFormat, subscription: Subscription) -> SchemaText:
    if each.schema is not None:
        return SchemaText(FORMATS[each.format], each.schema)
    subjects = [each.subject] if each.subject is not None else _subjects(each, subscription)
    try:
        found = [registered(each.registry, subject, each.version, each.format) for subject in subjects]
    except Refused as error:
        raise UserError(
            f"the schema registry has no schema for '{subjects[0]}': {error} (option '{each.name}Subject')"
        ) from None
    if any(one.text != found[0].text or one.referred != found[0].referred for one in found):
        raise BadOption(
            f"{each.name}Subject", f"must say which schema is read: those of {', '.join(subjects)} differ"
        )
    return found[0]


def _subjects(each: ReadFormat, subscription: Subscription) -> list[str]:
    topics = subscription.topics or tuple(sorted({place.topic for place in subscription.partitions}))
    if not topics:
        raise BadOption(
            f"{each.name}Subject", "or the schema must be given where topics are found by a pattern"
        )
    return [subject_of(topic, is_key=each.name == KEY) for topic in topics]


__all__ = ["KEY", "VALUE", "TypedColumn", "typed_columns"]
