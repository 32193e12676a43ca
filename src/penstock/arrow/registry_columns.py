"""Which columns of a topic are read by schemas of a registry, for `read`, `batches` and queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from penstock.arrow.registry_schemas import ANY, FORMATS, PREFIX, URL, registered, registry_of
from penstock.client.errors import BadOption, UserError
from penstock.client.schema_registry import RegistryRefused
from penstock.schemas.subject_names import subject_of

if TYPE_CHECKING:
    from penstock.arrow.registry_values import RegistryValues

_NO_SUBJECT = (40401, 40402, 40403)


class NoSuchSchema(UserError):
    """The registry has none for this topic."""

    def __init__(self, column: str, subject: str, detail: str) -> None:
        super().__init__(f"{column}_format: the schema registry has no schema for '{subject}': {detail}")
        self.column = column


def without_registry(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if not name.startswith(PREFIX)}


def typed_columns(
    topic: str,
    formats: Mapping[str, str | None],
    columns: Collection[str],
    url: str | None,
    options: Mapping[str, str],
) -> dict[str, RegistryValues]:
    """BadOption, NoSuchSchema, and what the registry says."""
    wanted = {name: each for name, each in formats.items() if each is not None}
    if not wanted:
        if url is not None or options:
            raise BadOption("schema_registry_url: it has a meaning with value_format or key_format only")
        return {}
    from penstock.arrow.registry_values import reader_of

    registry = registry_of({URL: url or "", **options})
    found = {}
    for name, value_format in wanted.items():
        if value_format not in (*FORMATS, ANY):
            raise BadOption(f"{name}_format: {value_format!r} is not {', '.join((*FORMATS, ANY))}")
        if name not in columns:
            raise BadOption(f"{name}_format: the column {name} is not among those that are wanted")
        subject = subject_of(topic, is_key=name == "key")
        try:
            schema = registered(registry, subject, None, value_format)
        except RegistryRefused as error:
            if error.code in _NO_SUBJECT:
                raise NoSuchSchema(name, subject, str(error)) from None
            raise
        found[name] = reader_of(registry, schema)
    return found
