"""Options about schemas of a registry: which format keys and values have, and where the schemas are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from penstock.arrow.registry_schemas import FORMATS, PREFIX, Registry, WriteFormat, registry_of
from penstock.schemas.subject_names import OPTIONS as STRATEGY_OPTIONS
from penstock.schemas.subject_names import TOPIC_NAME, strategy_of
from penstock.spark.failures import BadOption

READ_NAMES: Final = (
    "valueFormat", "keyFormat", "keySchema", "valueSchemaVersion", "keySchemaVersion", "valueSubject", "keySubject",
    "valueMessage", "keyMessage", "includeRawKey", "includeErrors",
)  # fmt: skip
WRITE_NAMES: Final = (
    "valueFormat", "keyFormat", "valueSchema", "keySchema", "valueSubject", "keySubject", "valueMessage",
    "keyMessage", "auto.register.schemas",
    "use.latest.version", "normalize.schemas", *STRATEGY_OPTIONS.values(),
)  # fmt: skip
VALUE, KEY = "value", "key"


class Given(Protocol):
    """What options.py has read."""

    def text(self, name: str) -> str | None: ...

    def flag(self, name: str, default: bool) -> bool: ...

    def number(self, name: str, *, at_least: int = 1) -> int | None: ...


class ReadFormat(NamedTuple):
    """How one of the columns `key` and `value` is read."""

    name: str
    registry: Registry
    format: str
    schema: str | None
    """The reader's, as text; else that of the subject."""
    subject: str | None
    version: int | None
    message: str
    """Protobuf's, by its full name; empty: the first."""
    fails_fast: bool
    include_raw: bool
    include_error: bool


def is_registry_option(name: str) -> bool:
    return name.lower().startswith(PREFIX)


def read_formats(given: Given, options: Mapping[str, str]) -> tuple[ReadFormat, ...]:
    found = []
    for name in (KEY, VALUE):
        value_format = _format(given, name)
        if value_format is None:
            _refuse(given, (f"{name}SchemaVersion", f"{name}Subject", f"{name}Message"), f"{name}Format")
            continue
        schema, subject = given.text(f"{name}Schema"), given.text(f"{name}Subject")
        version = _version(given, f"{name}SchemaVersion")
        if schema is not None and (subject is not None or version is not None):
            raise BadOption(f"{name}Schema", "is the schema itself: it needs no subject and no version")
        found.append(
            ReadFormat(
                name,
                _registry(options),
                value_format,
                schema,
                subject,
                version,
                _message(given, name, value_format),
                (given.text("valueMode") or "PERMISSIVE").upper() == "FAILFAST",
                given.flag("includeRawKey" if name == KEY else "includeRawValue", False),
                given.flag("includeErrors", False),
            )
        )
    if not any(each.name == KEY for each in found):
        _refuse(given, ("keySchema", "includeRawKey"), "keyFormat")
    if not found:
        _refuse(given, ("includeErrors",), "valueFormat")
        _refuse_registry(options)
    return tuple(found)


def write_formats(given: Given, options: Mapping[str, str]) -> dict[str, WriteFormat]:
    found = {}
    for name in (KEY, VALUE):
        value_format = _format(given, name)
        strategy_option = STRATEGY_OPTIONS[name == KEY]
        if value_format is None:
            _refuse(
                given, (f"{name}Schema", f"{name}Subject", f"{name}Message", strategy_option), f"{name}Format"
            )
            continue
        try:
            strategy = strategy_of(given.text(strategy_option) or TOPIC_NAME)
        except ValueError as error:
            raise BadOption(strategy_option, f"cannot be used: {error}") from None
        found[name] = WriteFormat(
            _registry(options),
            value_format,
            name == KEY,
            given.text(f"{name}Schema"),
            given.text(f"{name}Subject"),
            strategy,
            given.flag("auto.register.schemas", True),
            given.flag("use.latest.version", False),
            given.flag("normalize.schemas", False),
            _message(given, name, value_format),
        )
        _check_written(found[name], strategy_option)
    if not found:
        _refuse(given, ("auto.register.schemas", "use.latest.version", "normalize.schemas"), "valueFormat")
        _refuse_registry(options)
    return found


def _check_written(how: WriteFormat, strategy_option: str) -> None:
    name = KEY if how.is_key else VALUE
    if how.strategy != TOPIC_NAME and how.schema is None and how.subject is None:
        raise BadOption(strategy_option, f"needs '{name}Schema', whose name is part of the subject")


def _format(given: Given, name: str) -> str | None:
    said = given.text(f"{name}Format")
    if said is not None and said.lower() not in FORMATS:
        raise BadOption(f"{name}Format", f"must be {', '.join(FORMATS)}, not '{said}'")
    return None if said is None else said.lower()


def _message(given: Given, name: str, value_format: str) -> str:
    said = given.text(f"{name}Message")
    if said is not None and value_format != "protobuf":
        raise BadOption(f"{name}Message", f"has a meaning with '{name}Format' protobuf only")
    return said or ""


def _version(given: Given, option: str) -> int | None:
    said = given.text(option)
    return None if said is None or said.lower() == "latest" else given.number(option)


def _registry(options: Mapping[str, str]) -> Registry:
    try:
        return registry_of({name: value for name, value in options.items() if is_registry_option(name)})
    except ValueError as error:
        name, _, complaint = str(error).partition(": ")
        raise BadOption(name, complaint) from None


def _refuse(given: Given, names: tuple[str, ...], needed: str) -> None:
    for name in names:
        if given.text(name) is not None:
            raise BadOption(name, f"has a meaning with '{needed}' only")


def _refuse_registry(options: Mapping[str, str]) -> None:
    for name in options:
        if is_registry_option(name):
            raise BadOption(name, "has a meaning with 'valueFormat' or 'keyFormat' only")
