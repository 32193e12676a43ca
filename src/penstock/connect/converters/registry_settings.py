"""The settings of the converters that ask a schema registry, by Confluent's names."""

from __future__ import annotations

from typing import Any, Final

from penstock.connect.settings import HIGH, LOW, MEDIUM, REQUIRED, Kind, Setting, Settings, one_of

_TOPIC_NAME: Final = "io.confluent.kafka.serializers.subject.TopicNameStrategy"


def _switch(name: str, doc: str, *, default: bool = False) -> Setting:
    return Setting(name, Kind.BOOLEAN, doc, default=default, importance=LOW)


def _cache(name: str) -> Setting:
    return Setting(name, Kind.INT, "How many schemas are kept at most.", default=1000, importance=LOW)


def _strategy(of: str) -> Setting:
    doc = f"Under which subject schemas of {of}s are: TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy."
    return Setting(f"{of}.subject.name.strategy", Kind.CLASS, doc, default=_TOPIC_NAME, importance=MEDIUM)


def _text(name: str, doc: str, default: Any = None, kind: Kind = Kind.STRING) -> Setting:
    return Setting(name, kind, doc, default=default, importance=MEDIUM)


_REGISTRY: Final = Settings(
    Setting(
        "schema.registry.url", Kind.LIST, "The registry's address, or several, which are tried in turn.", default=REQUIRED,
        importance=HIGH,
    ),
    Setting(
        "auto.register.schemas", Kind.BOOLEAN, "Whether a schema that the subject does not have is registered.", default=True,
        importance=MEDIUM,
    ),
    _switch(
        "use.latest.version", "With auto.register.schemas=false: values are written with the subject's latest schema, and not "
        "with the one of the record.",
    ),
    _switch("normalize.schemas", "Whether the registry normalizes schemas that it is asked for."),
    _strategy("key"),
    _strategy("value"),
    _text("basic.auth.credentials.source", "Where the login is: URL or USER_INFO.", "URL"),
    _text("basic.auth.user.info", "NAME:PASSWORD for the registry.", "", Kind.PASSWORD),
    _text("schema.registry.basic.auth.user.info", "The same by its older name.", "", Kind.PASSWORD),
    _text("bearer.auth.token", "A token for the registry.", "", Kind.PASSWORD),
)  # fmt: skip

_META_DATA: Final = _switch(
    "connect.meta.data", "Whether the schema says what only Connect knows.", default=True
)
_KEEP_NULL: Final = _switch(
    "ignore.default.for.nullables", "Whether null stays null where a field has a default."
)
_SCRUB: Final = _switch(
    "scrub.invalid.names", "Whether other signs than letters, digits and _ in names become _."
)

AVRO_SETTINGS: Final = _REGISTRY | Settings(
    _cache("schemas.cache.config"),
    _META_DATA,
    _switch(
        "enhanced.avro.schema.support", "Whether enums stay enums, and unions name their branches in full."
    ),
    _switch("allow.optional.map.keys", "Whether maps whose keys may be null are maps in Avro."),
    _KEEP_NULL,
    _SCRUB,
)

JSON_SETTINGS: Final = _REGISTRY | Settings(
    _cache("schemas.cache.size"),
    _META_DATA,
    _switch("object.additional.properties", "Whether objects may have more properties.", default=True),
    _switch("use.optional.for.nonrequired", "Whether properties that are not required are optional."),
    Setting(
        "decimal.format", Kind.STRING, "How decimals are written: BASE64 or NUMERIC. Any case.", default="BASE64",
        check=one_of("BASE64", "NUMERIC", any_case=True), importance=LOW,
    ),
    _switch("json.fail.invalid.schema", "Whether values that the schema does not take are refused."),
    _KEEP_NULL,
)  # fmt: skip

PROTOBUF_SETTINGS: Final = _REGISTRY | Settings(
    _cache("schemas.cache.size"),
    _META_DATA,
    _switch("optional.for.nullables", "Whether fields that may be null are `optional`."),
    _switch(
        "wrapper.for.nullables",
        "Whether fields that may be null are messages such as google.protobuf.Int32Value.",
    ),
    _switch("generate.index.for.unions", "Whether a oneof's struct has an index in its name.", default=True),
    _switch("enhanced.protobuf.schema.support", "Whether names have the package in them."),
    _switch("int.for.enums", "Whether enums are numbers and not names."),
    _SCRUB,
)
