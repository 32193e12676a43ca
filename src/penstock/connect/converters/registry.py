"""Converters through a schema registry: Avro, JSON Schema and Protobuf, as Confluent's of the same names.

    value.converter=io.confluent.connect.avro.AvroConverter
    value.converter.schema.registry.url=http://localhost:8081

Written: a zero byte, the schema's id, the value. A schema that the subject does not have is registered (`auto.register.schemas`),
or the subject's latest is used (`use.latest.version`). What the registry says of an id is kept; so are the functions that read
and write with a schema, `schemas.cache.…` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from penstock.client.errors import BadOption, Refused, Unreachable
from penstock.client.schema_registry import SchemaRegistry
from penstock.client.schema_values import ReadSchema, ValueReader
from penstock.connect.converters.avro_schemas import AvroForm, to_avro
from penstock.connect.converters.avro_to_connect import from_avro
from penstock.connect.converters.avro_values import avro_reader, avro_writer
from penstock.connect.converters.either import Recent
from penstock.connect.converters.registry_settings import AVRO_SETTINGS, JSON_SETTINGS, PROTOBUF_SETTINGS
from penstock.connect.data.schema import Schema
from penstock.connect.errors import DataError, InvalidConfig, RetriableError
from penstock.connect.interface import Converter
from penstock.schemas.framing import framed, unframed
from penstock.schemas.model import AVRO, JSON, PROTOBUF, InvalidSchema, InvalidValue
from penstock.schemas.model import Schema as RegistrySchema
from penstock.schemas.parsing import parse
from penstock.schemas.subject_names import OPTIONS, strategy_of, subject_of

Write = Callable[[Any], bytes]
Read = Callable[[memoryview], tuple[Schema | None, Any]]


class _Written(NamedTuple):
    id: int
    write: Write


class _OfSchema(NamedTuple):
    """What is made of a Connect schema before the registry is asked."""

    own: RegistrySchema
    schema: Schema


class RegistryConverter(Converter):
    """What the three have in common. `own_schema`, `writer` and `reader` are of their kind."""

    kind: ClassVar[str]
    failed_to_write: ClassVar[str]
    failed_to_read: ClassVar[str]
    cache_setting: ClassVar[str] = "schemas.cache.size"

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        values = self.values
        try:
            self._strategy = strategy_of(values[OPTIONS[self.is_key]])
        except ValueError as error:
            raise InvalidConfig(f"{OPTIONS[self.is_key]}: {error}") from None
        try:
            self._registry = SchemaRegistry(",".join(values["schema.registry.url"]), given)
        except BadOption as error:
            raise InvalidConfig(str(error)) from None
        size = values[self.cache_setting]
        self._reader = ValueReader(self._registry, at_most=max(1, size))
        self._schemas = Recent[_OfSchema](size)
        self._writers = Recent[_Written](size)
        self._readers = Recent[Read](size)
        self._last: tuple[str, Schema, _Written] | None = None

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None and (schema is None or schema.is_optional):
            return None
        try:
            written = self._written(topic, schema, value)
            return framed(written.id, written.write(value))
        except Unreachable as error:
            raise RetriableError(self.failed_to_write.format(topic) + str(error)) from None
        except (DataError, InvalidSchema, InvalidValue, Refused) as error:
            raise DataError(self.failed_to_write.format(topic) + str(error)) from None

    def to_value(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return None, None
        try:
            name, payload = unframed(data)
            found = self._reader.schema(name)
            return self._readers.get(name, lambda: self._reading(found))(payload)
        except Unreachable as error:
            raise RetriableError(self.failed_to_read.format(topic) + str(error)) from None
        except (DataError, InvalidSchema, InvalidValue, Refused) as error:
            raise DataError(self.failed_to_read.format(topic) + str(error)) from None

    def _written(self, topic: str, schema: Schema | None, value: Any) -> _Written:
        if schema is None:
            raise DataError(
                f"a value without a schema ({type(value).__name__}): a source or transform must give one, or use JsonConverter "
                "with schemas.enable=false"
            )
        last = self._last
        # The latest version of a subject may change: it is asked for, and kept, by the registry's client.
        if last is not None and last[0] == topic and last[1] is schema:
            return last[2]
        of_schema = self._schemas.get(schema, lambda: _OfSchema(self.own_schema(schema), schema))
        if self.values["use.latest.version"] and not self.values["auto.register.schemas"]:
            return self._with_latest(topic, of_schema)
        written = self._writers.get((topic, schema), lambda: self._registered(topic, of_schema))
        self._last = (topic, schema, written)
        return written

    def _subject(self, topic: str, own: RegistrySchema) -> str:
        return subject_of(topic, is_key=self.is_key, strategy=self._strategy, full_name=lambda: own.full_name)

    def _registered(self, topic: str, of_schema: _OfSchema) -> _Written:
        own = of_schema.own
        ask = self._registry.register if self.values["auto.register.schemas"] else self._registry.lookup
        normalize = self.values["normalize.schemas"]
        schema_id = ask(self._subject(topic, own), own.text, self.kind, own.references, normalize=normalize)
        return _Written(schema_id, self.writer(of_schema.schema, own, is_own=True))

    def _with_latest(self, topic: str, of_schema: _OfSchema) -> _Written:
        latest = self._registry.latest(self._subject(topic, of_schema.own))

        def make() -> _Written:
            texts = self._registry.texts_of(latest.references)
            parsed = parse(latest.kind, latest.text, latest.references, texts)
            if parsed.kind != self.kind:
                raise DataError(f"the subject has a schema of {parsed.kind}, not {self.kind}")
            return _Written(latest.id, self.writer(of_schema.schema, parsed, is_own=False))

        return self._writers.get((latest.id, of_schema.schema), make)

    def _reading(self, found: ReadSchema) -> Read:
        if found.schema.kind != self.kind:
            raise DataError(f"the value was written with a schema of {found.schema.kind}, not {self.kind}")
        return self.reader(found.schema)

    def own_schema(self, schema: Schema) -> RegistrySchema:
        raise NotImplementedError

    def writer(self, schema: Schema, written: RegistrySchema, *, is_own: bool) -> Write:
        raise NotImplementedError

    def reader(self, written: RegistrySchema) -> Read:
        raise NotImplementedError


class AvroConverter(RegistryConverter):
    java_names = ("io.confluent.connect.avro.AvroConverter",)
    settings = AVRO_SETTINGS
    kind = AVRO
    cache_setting = "schemas.cache.config"
    failed_to_write = "Failed to serialize Avro data from topic {} : "
    failed_to_read = "Failed to deserialize data for topic {} to Avro: "

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        values = self.values
        self._form = AvroForm(
            values["connect.meta.data"],
            values["enhanced.avro.schema.support"],
            values["scrub.invalid.names"],
            values["allow.optional.map.keys"],
        )

    def own_schema(self, schema: Schema) -> RegistrySchema:
        return parse(AVRO, to_avro(schema, self._form))

    def writer(self, schema: Schema, written: Any, *, is_own: bool) -> Write:
        keeps_null = self.values["ignore.default.for.nullables"]
        return avro_writer(schema, written, self._form, is_own=is_own, keeps_null=keeps_null)

    def reader(self, written: Any) -> Read:
        schema = from_avro(written.root, self._form)
        read = avro_reader(written, schema, self._form)
        return lambda data: (schema, read(data))


_JSON_AND_KAFKA: Final = "due to serialization error of topic {}: "


class JsonSchemaConverter(RegistryConverter):
    java_names = ("io.confluent.connect.json.JsonSchemaConverter",)
    settings = JSON_SETTINGS
    kind = JSON
    failed_to_write = "Converting Kafka Connect data to byte[] failed " + _JSON_AND_KAFKA
    failed_to_read = "Converting byte[] to Kafka Connect data failed " + _JSON_AND_KAFKA

    def configure(self, given: Mapping[str, str]) -> None:
        from penstock.connect.converters.json_schema_values import JsonSchemaForm

        super().configure(given)
        values = self.values
        self._form = JsonSchemaForm(
            values["connect.meta.data"],
            values["object.additional.properties"],
            values["use.optional.for.nonrequired"],
            values["decimal.format"].upper() == "NUMERIC",
            values["ignore.default.for.nullables"],
        )

    def own_schema(self, schema: Schema) -> RegistrySchema:
        from penstock.connect.converters.json_schema_schemas import to_json_schema

        return parse(JSON, to_json_schema(schema, self._form))

    def writer(self, schema: Schema, written: Any, *, is_own: bool) -> Write:
        from penstock.connect.converters.json_schema_values import json_schema_writer

        return json_schema_writer(
            schema, written, self._form, validates=self.values["json.fail.invalid.schema"]
        )

    def reader(self, written: Any) -> Read:
        from penstock.connect.converters.json_schema_values import json_schema_reader

        texts = self._registry.texts_of(written.references)
        return json_schema_reader(
            written, texts, self._form, validates=self.values["json.fail.invalid.schema"]
        )


class ProtobufConverter(RegistryConverter):
    java_names = ("io.confluent.connect.protobuf.ProtobufConverter",)
    settings = PROTOBUF_SETTINGS
    kind = PROTOBUF
    failed_to_write = "Failed to serialize Protobuf data from topic {} : "
    failed_to_read = "Failed to deserialize data for topic {} to Protobuf: "

    def configure(self, given: Mapping[str, str]) -> None:
        from penstock.connect.converters.protobuf_schemas import ProtobufForm

        super().configure(given)
        values = self.values
        self._form = ProtobufForm(
            values["connect.meta.data"],
            values["optional.for.nullables"],
            values["wrapper.for.nullables"],
            values["generate.index.for.unions"],
            values["enhanced.protobuf.schema.support"],
            values["scrub.invalid.names"],
            values["int.for.enums"],
        )

    def own_schema(self, schema: Schema) -> RegistrySchema:
        from penstock.connect.converters.protobuf_schemas import to_protobuf

        return parse(PROTOBUF, to_protobuf(schema, self._form))

    def writer(self, schema: Schema, written: Any, *, is_own: bool) -> Write:
        from penstock.connect.converters.protobuf_values import protobuf_writer

        return protobuf_writer(schema, written, self._form)

    def reader(self, written: Any) -> Read:
        from penstock.connect.converters.protobuf_values import protobuf_reader

        return protobuf_reader(written, self._form)
