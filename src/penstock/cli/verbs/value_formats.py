"""Options of verbs that read and write values by the schemas of a registry, and what they ask for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from penstock.cli.verbs.common_options import like
from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.schemas.model import InvalidValue

if TYPE_CHECKING:
    from penstock.client.json_lines import JsonReader, JsonWriter
    from penstock.client.schema_registry import SchemaRegistry
    from penstock.client.schema_values import SchemaChoice

F = TypeVar("F", bound=Callable[..., Any])

TEXT: Final = "text"
REGISTRY: Final = "registry"
FORMATS: Final = (TEXT, REGISTRY, "avro", "json-schema", "protobuf")
STRATEGIES: Final = ("topic-name", "record-name", "topic-record-name")
_VARIABLE: Final = "PENSTOCK_SCHEMA_REGISTRY"
_URL: Final = "schema.registry.url"
_ARROW_NAMES: Final = {"json-schema": "json"}


class ReadFormats(NamedTuple):
    """How the parts of records are read; None where they are shown as they are."""

    key: JsonReader | None
    value: JsonReader | None

    def readable(self, key: bytes | None, value: bytes | None) -> dict[str, Any]:
        """What the parts say that have a reader and can be read."""
        found = {}
        for part, reader, data in (("key", self.key, key), ("value", self.value, value)):
            if reader is not None and data is not None:
                with suppress(InvalidValue):
                    found[part] = reader.read(data)
        return found

    def decoded(self, record: Any) -> dict[str, Any]:
        """What the parts say that have a reader and are not null. InvalidValue, with the record's place."""
        found = {}
        for part, reader, data in (("key", self.key, record.key()), ("value", self.value, record.value())):
            if reader is None or data is None:
                continue
            try:
                found[part] = reader.read(data)
            except InvalidValue as error:
                place = f"{record.topic()}-{record.partition()}@{record.offset()}"
                raise InvalidValue(f"{place}: the {part}: {error}") from None
        return found


class WriteFormats(NamedTuple):
    """How the parts of records are written; None where they go out as they are."""

    key: JsonWriter | None = None
    value: JsonWriter | None = None


def read_formats(command: F) -> F:
    """Adds --value-format and what belongs to it. The command gets `formats`, a function of its connection → ReadFormats."""

    def with_formats(
        *args: Any,
        key_format: str,
        value_format: str,
        plain: bool,
        schema_registry_url: str | None,
        **options: Any,
    ) -> Any:
        def formats(connection: Connection) -> ReadFormats:
            if key_format == value_format == TEXT:
                return ReadFormats(None, None)
            from penstock.client.json_lines import KIND_NAMES, JsonReader

            registry = registry_of(connection, schema_registry_url)
            key, value = (
                None if each == TEXT else JsonReader(registry, KIND_NAMES.get(each), plain=plain)
                for each in (key_format, value_format)
            )
            return ReadFormats(key, value)

        return command(*args, formats=formats, **options)

    plain_option = click.option(
        "--plain", is_flag=True, help="Values of Avro's unions without the names of their branches."
    )
    words = "registry: by the schema whose id the {} begins with; the others: the same, of this kind only."
    decorated = plain_option(_registry_option(like(with_formats, command)))
    return _format_options(decorated, words)  # type: ignore[no-any-return]


def query_formats(command: F) -> F:
    """Adds --value-format and what belongs to it. The command gets `formats`, a function of its connection → the arguments
    of `penstock.arrow` for it, with the properties of the registry under `options`."""

    def with_formats(
        *args: Any, key_format: str, value_format: str, schema_registry_url: str | None, **options: Any
    ) -> Any:
        def formats(connection: Connection) -> dict[str, Any]:
            asked = {"key_format": key_format, "value_format": value_format}
            found = {name: _ARROW_NAMES.get(each, each) for name, each in asked.items() if each != TEXT}
            if not found:
                return {"options": {}}
            given = connection.registry_properties
            return {
                **found,
                "schema_registry_url": url_of(given, schema_registry_url),
                "options": {name: each for name, each in given.items() if name != _URL},
            }

        return command(*args, formats=formats, **options)

    words = "registry: {}s become what the newest schema of the topic's subject says; the others: of this kind only."
    return _format_options(_registry_option(like(with_formats, command)), words)  # type: ignore[no-any-return]


def write_formats(command: F) -> F:
    """Adds --value-format, the choice of a schema and what belongs to it. The command gets `formats`, a function of its
    connection, the topic and whether there are keys → WriteFormats."""

    def with_formats(
        *args: Any,
        key_format: str,
        value_format: str,
        key_schema: str | None,
        value_schema: str | None,
        key_schema_id: int | None,
        value_schema_id: int | None,
        message: str | None,
        subject_name_strategy: str,
        no_auto_register: bool,
        schema_registry_url: str | None,
        **options: Any,
    ) -> Any:
        _check_asked("key", key_format, key_schema, key_schema_id)
        _check_asked("value", value_format, value_schema, value_schema_id)

        shared = {
            "strategy": subject_name_strategy.replace("-", "_"),
            "auto_register": not no_auto_register,
        }

        def formats(connection: Connection, topic: str, *, has_keys: bool) -> WriteFormats:
            if key_format == value_format == TEXT:
                return WriteFormats(None, None)
            if key_format != TEXT and not has_keys:
                raise click.UsageError("--key-format needs keys: --key or --key-separator.")
            from penstock.client.json_lines import KIND_NAMES, JsonWriter

            registry = registry_of(connection, schema_registry_url)
            key = value = None
            if key_format != TEXT:
                chosen = _choice("key", key_format, key_schema, key_schema_id, **shared)
                key = JsonWriter(registry, topic, chosen, kind=KIND_NAMES.get(key_format), is_key=True)
            if value_format != TEXT:
                chosen = _choice(
                    "value", value_format, value_schema, value_schema_id, message=message, **shared
                )
                value = JsonWriter(registry, topic, chosen, kind=KIND_NAMES.get(value_format))
            _check(key, "key", topic)
            _check(value, "value", topic)
            return WriteFormats(key, value)

        return command(*args, formats=formats, **options)

    decorated = _registry_option(like(with_formats, command))
    for option in reversed(_WRITE_OPTIONS):
        decorated = option(decorated)
    words = "JSON in, {}s by a schema of the registry out; registry: of whatever kind the schema is."
    return _format_options(decorated, words)  # type: ignore[no-any-return]


_WRITE_OPTIONS: Final = (
    click.option(
        "--value-schema",
        metavar="SCHEMA",
        help="The schema of the values: a file, or its text. Without it, the newest one of the subject.",
    ),
    click.option("--value-schema-id", type=click.IntRange(min=1), help="The schema of the values by its id."),
    click.option(
        "--message",
        metavar="NAME",
        help="The Protobuf message of the values, by its full name, if not the first.",
    ),
    click.option("--key-schema", metavar="SCHEMA", help="The same for the keys."),
    click.option("--key-schema-id", type=click.IntRange(min=1), help="The same for the keys."),
    click.option(
        "--subject-name-strategy",
        type=click.Choice(STRATEGIES),
        default=STRATEGIES[0],
        show_default=True,
        help="Under which subject a schema is registered and looked for.",
    ),
    click.option(
        "--no-auto-register", is_flag=True, help="A schema that the subject does not have is an error."
    ),
)


def _format_options(command: Any, words: str) -> Any:
    for part in ("key", "value"):
        command = click.option(
            f"--{part}-format",
            type=click.Choice(FORMATS),
            default=TEXT,
            show_default=True,
            help=words.format(part),
        )(command)
    return command


def _registry_option(command: Any) -> Any:
    return click.option(
        "--schema-registry-url",
        metavar="URL",
        help=f"Where the registry is. Otherwise {_URL} of --command-config, ${_VARIABLE} or http://localhost:8081. "
        "Its login is in --command-config: schema.registry.basic.auth.user.info, .bearer.auth.token, .ssl.*.",
    )(command)


def registry_of(connection: Connection, url: str | None) -> SchemaRegistry:
    from penstock.client.schema_registry import SchemaRegistry

    properties = connection.registry_properties
    return SchemaRegistry(url_of(properties, url), properties)


def url_of(properties: Mapping[str, str], url: str | None) -> str:
    from penstock.client.json_lines import DEFAULT_URL

    return url or properties.get(_URL) or os.environ.get(_VARIABLE) or DEFAULT_URL


def _check_asked(part: str, format: str, schema: str | None, schema_id: int | None) -> None:
    if schema is not None and schema_id is not None:
        raise click.UsageError(f"Give --{part}-schema or --{part}-schema-id, not both.")
    if format == TEXT and (schema is not None or schema_id is not None):
        raise click.UsageError(f"A schema of {part}s needs --{part}-format.")
    if format == REGISTRY and schema is not None:
        raise click.UsageError(f"--{part}-schema needs its kind: --{part}-format {', '.join(FORMATS[2:])}.")


def _choice(part: str, format: str, schema: str | None, schema_id: int | None, **shared: Any) -> SchemaChoice:
    from penstock.client.json_lines import KIND_NAMES
    from penstock.client.schema_values import SchemaChoice

    if schema is not None:
        text = _schema_text(schema, f"--{part}-schema")
        return SchemaChoice(kind=KIND_NAMES[format], text=text, **shared)
    return SchemaChoice(id=schema_id, **shared)


def _schema_text(given: str, option: str) -> str:
    """@FILE and FILE are read; what has braces, brackets or quotes is the text itself."""
    from penstock.client.property_files import read_text

    if not given.startswith("@") and (
        given.strip() in ("true", "false") or any(each in given for each in '{["')
    ):
        return given
    try:
        return read_text(given.removeprefix("@"))
    except UserError as error:
        raise UserError(f"{option}: {error}") from None


def _check(writer: JsonWriter | None, part: str, topic: str) -> None:
    from penstock.client.schema_registry import RegistryRefused

    if writer is None:
        return
    try:
        writer.check()
    except RegistryRefused as error:
        if error.status == 404:
            way_out = f"Another schema is chosen with --{part}-schema or --{part}-schema-id."
            raise UserError(f"the {part}s of {topic}: {str(error).rstrip('.')}. {way_out}") from None
        raise
    except UserError as error:
        raise UserError(f"the {part}s of {topic}: {error}") from None
