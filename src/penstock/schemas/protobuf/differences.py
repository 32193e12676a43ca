"""The kinds of differences between two Protobuf schemas, by Confluent's names, and its words for those that break readers."""

from __future__ import annotations

from typing import Final, NamedTuple

PACKAGE_CHANGED: Final = "PACKAGE_CHANGED"
MESSAGE_ADDED: Final = "MESSAGE_ADDED"
MESSAGE_REMOVED: Final = "MESSAGE_REMOVED"
MESSAGE_MOVED: Final = "MESSAGE_MOVED"
ENUM_ADDED: Final = "ENUM_ADDED"
ENUM_REMOVED: Final = "ENUM_REMOVED"
ENUM_CONST_ADDED: Final = "ENUM_CONST_ADDED"
ENUM_CONST_CHANGED: Final = "ENUM_CONST_CHANGED"
ENUM_CONST_REMOVED: Final = "ENUM_CONST_REMOVED"
FIELD_ADDED: Final = "FIELD_ADDED"
FIELD_REMOVED: Final = "FIELD_REMOVED"
FIELD_NAME_CHANGED: Final = "FIELD_NAME_CHANGED"
FIELD_KIND_CHANGED: Final = "FIELD_KIND_CHANGED"
FIELD_SCALAR_KIND_CHANGED: Final = "FIELD_SCALAR_KIND_CHANGED"
FIELD_NAMED_TYPE_CHANGED: Final = "FIELD_NAMED_TYPE_CHANGED"
FIELD_NUMERIC_LABEL_CHANGED: Final = "FIELD_NUMERIC_LABEL_CHANGED"
FIELD_STRING_OR_BYTES_LABEL_CHANGED: Final = "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
REQUIRED_FIELD_ADDED: Final = "REQUIRED_FIELD_ADDED"
REQUIRED_FIELD_REMOVED: Final = "REQUIRED_FIELD_REMOVED"
ONEOF_ADDED: Final = "ONEOF_ADDED"
ONEOF_REMOVED: Final = "ONEOF_REMOVED"
ONEOF_FIELD_ADDED: Final = "ONEOF_FIELD_ADDED"
ONEOF_FIELD_REMOVED: Final = "ONEOF_FIELD_REMOVED"
ONEOF_FIELD_MOVED_TO_TOP_LEVEL: Final = "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"
MULTIPLE_FIELDS_MOVED_TO_ONEOF: Final = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
FIELD_MOVED_TO_EXISTING_ONEOF: Final = "FIELD_MOVED_TO_EXISTING_ONEOF"

# Tools read these lines, so they are Confluent's to the letter, with both spaces after "required field".
INCOMPATIBLE: Final = {
    PACKAGE_CHANGED: "The package at '{}' in the %new% schema does not match the package in the %old% schema",
    MESSAGE_REMOVED: "The %new% schema is missing a MESSAGE type at path '{}' in the %old% schema",
    FIELD_KIND_CHANGED: "The type of a field at path '{}' in the %new% schema does not match the %old% schema",
    FIELD_SCALAR_KIND_CHANGED: "The kind of a SCALAR field at path '{}' in the %new% schema"
    " does not match its kind in the %old% schema",
    FIELD_NAMED_TYPE_CHANGED: "The type of a MESSAGE field at path '{}' in the %new% schema"
    " does not match its type in the %old% schema",
    FIELD_NUMERIC_LABEL_CHANGED: "The label for a NUMERIC field at path '{}' in the %new% schema"
    " does not match its label in the %old% schema",
    REQUIRED_FIELD_ADDED: "A required field  at path '{}' in the %new% schema is missing in the %old% schema",
    REQUIRED_FIELD_REMOVED: "The %new% schema is missing a required field at path: '{}' in the %old% schema",
    ONEOF_FIELD_REMOVED: "The %new% schema is missing a oneof field at path '{}' in the %old% schema",
    MULTIPLE_FIELDS_MOVED_TO_ONEOF: "Multiple fields in the oneof at path '{}' in the %new% schema"
    " are outside a oneof in the %old% schema",
    FIELD_MOVED_TO_EXISTING_ONEOF: "A field in the oneof at path '{}' in the %new% schema"
    " is outside an existing oneof in the %old% schema",
}


class Difference(NamedTuple):
    kind: str
    path: str

    @property
    def is_compatible(self) -> bool:
        return self.kind not in INCOMPATIBLE


class TypeComparison(NamedTuple):
    """A field has a message of another file on both sides: whether it fits is known when that has been compared."""

    old: str
    new: str
    """Full names."""
    path: str
