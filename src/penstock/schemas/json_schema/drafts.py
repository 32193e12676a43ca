"""The drafts of JSON Schema, and under which keywords each has schemas."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import jsonschema_rs

BACKTRACKING_STEPS: Final = 20_000
PATTERN_BYTES: Final = 4 << 20
PATTERNS: Final = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=BACKTRACKING_STEPS, size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES
)
"""Regular expressions are matched in linear time. Only look-around and back references need more, and end at a limit: then the
string counts as one that does not match."""


class Draft(NamedTuple):
    name: str
    uri: str
    number: int
    validator: Any
    """jsonschema_rs's class."""

    @property
    def is_modern(self) -> bool:
        """Of 2019 or later: `$ref` has neighbours, `unevaluated…` is known."""
        return self.number >= 8

    @property
    def id_keyword(self) -> str:
        return "id" if self.number == 4 else "$id"


DRAFT_4: Final = Draft("draft 4", "http://json-schema.org/draft-04/schema#", 4, jsonschema_rs.Draft4Validator)
DRAFT_6: Final = Draft("draft 6", "http://json-schema.org/draft-06/schema#", 6, jsonschema_rs.Draft6Validator)
DRAFT_7: Final = Draft("draft 7", "http://json-schema.org/draft-07/schema#", 7, jsonschema_rs.Draft7Validator)
DRAFT_2019_09: Final = Draft(
    "2019-09", "https://json-schema.org/draft/2019-09/schema", 8, jsonschema_rs.Draft201909Validator
)
DRAFT_2020_12: Final = Draft(
    "2020-12", "https://json-schema.org/draft/2020-12/schema", 9, jsonschema_rs.Draft202012Validator
)
DEFAULT: Final = DRAFT_7
"""Confluent's, for a schema that does not say and for one that names another language."""

_BY_URI: Final = {
    draft.uri.rstrip("#").partition("://")[2]: draft
    for draft in (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12)
} | {"json-schema.org/schema": DRAFT_4}


def draft_of(schema: Any, default: Draft = DEFAULT) -> Draft:
    """By `$schema`, with http or https, with or without the # at its end."""
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    return draft_named(declared, default) if isinstance(declared, str) else default


def draft_named(uri: str, default: Draft = DEFAULT) -> Draft:
    scheme, _, rest = uri.partition("://")
    return _BY_URI.get(rest.removesuffix("#"), default) if scheme in ("http", "https") else default


def is_metaschema(uri: str) -> bool:
    """Those that every validator knows."""
    rest = uri.partition("://")[2].removesuffix("#")
    return rest in _BY_URI or rest.startswith(
        ("json-schema.org/draft/2019-09/meta/", "json-schema.org/draft/2020-12/meta/")
    )


SCHEMAS: Final = frozenset((
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames",
    "then", "unevaluatedItems", "unevaluatedProperties",
))  # fmt: skip
"""Keywords whose value is a schema."""
LISTS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
MAPS: Final = frozenset(
    ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
)
