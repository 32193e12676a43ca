"""Options of verbs that read and write values by the schemas of a registry, and what they ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from penstock.cli.verbs.common_options import like
from penstock.client.clients import Connection
from penstock.client.value_formats import (
    FORMATS,
    REGISTRY,
    STRATEGIES,
    TEXT,
    URL,
    VARIABLE,
    Asked,
    ReadFormats,
    WriteFormats,
    arrow_arguments,
    readers,
    writers,
)

F = TypeVar("F", bound=Callable[..., Any])


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
            return readers(
                connection, key=key_format, value=value_format, plain=plain, url=schema_registry_url
            )

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
            return arrow_arguments(connection, key=key_format, value=value_format, url=schema_registry_url)

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

        def formats(connection: Connection, topic: str, *, has_keys: bool) -> WriteFormats:
            if key_format != TEXT and not has_keys:
                raise click.UsageError("--key-format needs keys: --key or --key-separator.")
            return writers(
                connection,
                topic,
                key=Asked(key_format, key_schema, key_schema_id),
                value=Asked(value_format, value_schema, value_schema_id),
                message=message,
                strategy=subject_name_strategy,
                auto_register=not no_auto_register,
                url=schema_registry_url,
            )

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
        help=f"Where the registry is. Otherwise {URL} of --command-config, ${VARIABLE} or http://localhost:8081. "
        "Its login is in --command-config: schema.registry.basic.auth.user.info, .bearer.auth.token, .ssl.*.",
    )(command)


def _check_asked(part: str, format: str, schema: str | None, schema_id: int | None) -> None:
    if schema is not None and schema_id is not None:
        raise click.UsageError(f"Give --{part}-schema or --{part}-schema-id, not both.")
    if format == TEXT and (schema is not None or schema_id is not None):
        raise click.UsageError(f"A schema of {part}s needs --{part}-format.")
    if format == REGISTRY and schema is not None:
        raise click.UsageError(f"--{part}-schema needs its kind: --{part}-format {', '.join(FORMATS[2:])}.")
