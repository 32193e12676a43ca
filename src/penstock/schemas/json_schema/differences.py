"""What may be different between two schemas, which of it is compatible, and Confluent's words for it.

Compatible means: what was valid under the old schema is valid under the new one, but for the exceptions that Confluent's rules
make.
LENIENT also allows what only the other values of an open object could break: a property that is added to it, and a removed one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.schemas.compatibility import LENIENT
from penstock.schemas.model import Incompatibility

MAX_DIFFERENCES: Final = 1_000
"""Of one pair of schemas. Those that break compatibility go before others."""
TOO_LARGE: Final = "SCHEMAS_TOO_LARGE_TO_COMPARE"
"""Ours: the comparison would take too long, so nothing is promised."""


def _kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


COMPATIBLE: Final = _kinds(
    """
    ID_CHANGED DESCRIPTION_CHANGED TITLE_CHANGED DEFAULT_CHANGED SCHEMA_REMOVED TYPE_EXTENDED
    MAX_LENGTH_INCREASED MAX_LENGTH_REMOVED MIN_LENGTH_DECREASED MIN_LENGTH_REMOVED PATTERN_REMOVED
    MAXIMUM_INCREASED MAXIMUM_REMOVED MINIMUM_DECREASED MINIMUM_REMOVED
    EXCLUSIVE_MAXIMUM_INCREASED EXCLUSIVE_MAXIMUM_REMOVED EXCLUSIVE_MINIMUM_DECREASED EXCLUSIVE_MINIMUM_REMOVED
    MULTIPLE_OF_REDUCED MULTIPLE_OF_REMOVED
    REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED REQUIRED_ATTRIBUTE_REMOVED
    DEPENDENCY_ARRAY_NARROWED DEPENDENCY_ARRAY_REMOVED DEPENDENCY_SCHEMA_REMOVED
    MAX_PROPERTIES_INCREASED MAX_PROPERTIES_REMOVED MIN_PROPERTIES_DECREASED MIN_PROPERTIES_REMOVED
    ADDITIONAL_PROPERTIES_ADDED ADDITIONAL_PROPERTIES_EXTENDED UNEVALUATED_PROPERTIES_ADDED UNEVALUATED_PROPERTIES_EXTENDED
    PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
    PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL
    PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    MAX_ITEMS_INCREASED MAX_ITEMS_REMOVED MIN_ITEMS_DECREASED MIN_ITEMS_REMOVED
    MAX_CONTAINS_INCREASED MAX_CONTAINS_REMOVED MIN_CONTAINS_DECREASED MIN_CONTAINS_REMOVED UNIQUE_ITEMS_REMOVED
    ADDITIONAL_ITEMS_ADDED ADDITIONAL_ITEMS_EXTENDED UNEVALUATED_ITEMS_ADDED UNEVALUATED_ITEMS_EXTENDED
    ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_CLOSED_CONTENT_MODEL
    ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL
    ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    ENUM_ARRAY_EXTENDED COMBINED_TYPE_EXTENDED PRODUCT_TYPE_NARROWED SUM_TYPE_EXTENDED NOT_TYPE_NARROWED
    """
)
COMPATIBLE_WHEN_LENIENT: Final = COMPATIBLE | _kinds(
    """
    ADDITIONAL_PROPERTIES_NARROWED ADDITIONAL_PROPERTIES_REMOVED
    UNEVALUATED_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_REMOVED
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    """
)

_KEYWORD_ONLY_HERE: Final = (
    "The keyword at path '{path}' in the %new% schema is not present in the %old% schema"
)
_MORE: Final = "The value at path '{path}' in the %new% schema is more than its value in the %old% schema"
_LESS: Final = "The value at path '{path}' in the %new% schema is less than its value in the %old% schema"
_CHANGED: Final = "The value at path '{path}' is different between the %new% and %old% schema"
_FEWER_PARTS: Final = (
    "An array or combined type at path '{path}' has fewer elements in the %new% schema than the %old% schema"
)
_MORE_PARTS: Final = (
    "An array or combined type at path '{path}' has more elements in the %new% schema than the %old% schema"
)
_OTHER_TYPE: Final = "A type at path '{path}' is different between the %new% schema and the %old% schema"
_OPEN: Final = (
    "The %new% schema has an open content model and has a property or item at path '{path}' which is missing in the "
    "%old% schema"
)
_CLOSED: Final = (
    "The %new% has a closed content model and is missing a property or item present at path '{path}' in the "
    "%old% schema"
)
_REMOVED: Final = (
    "A property or item is missing in the %new% schema but present at path '{path}' in the %old% schema and is not covered by "
    "its partially open content model"
)
_ADDED: Final = (
    "The %new% schema has a property or item at path '{path}' which is missing in the %old% schema and is not covered by "
    "its partially open content model"
)
_WORDS: Final = {
    _KEYWORD_ONLY_HERE: """MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MINIMUM_ADDED MULTIPLE_OF_ADDED
        MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED REQUIRED_ATTRIBUTE_ADDED MAX_PROPERTIES_ADDED MIN_PROPERTIES_ADDED
        DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED MAX_ITEMS_ADDED MIN_ITEMS_ADDED MAX_CONTAINS_ADDED MIN_CONTAINS_ADDED
        UNIQUE_ITEMS_ADDED ADDITIONAL_ITEMS_REMOVED ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_REMOVED
        UNEVALUATED_ITEMS_REMOVED""",
    _MORE: """MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED MIN_PROPERTIES_INCREASED MULTIPLE_OF_EXPANDED
        MIN_ITEMS_INCREASED MIN_CONTAINS_INCREASED""",
    _LESS: """MAX_LENGTH_DECREASED MAXIMUM_DECREASED MAX_ITEMS_DECREASED MAX_CONTAINS_DECREASED EXCLUSIVE_MAXIMUM_DECREASED
        MAX_PROPERTIES_DECREASED""",
    _CHANGED: "PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED",
    _FEWER_PARTS: """ADDITIONAL_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED ADDITIONAL_PROPERTIES_NARROWED
        UNEVALUATED_PROPERTIES_NARROWED UNEVALUATED_ITEMS_NARROWED""",
    _MORE_PARTS: "DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED SUM_TYPE_EXTENDED NOT_TYPE_EXTENDED",
    _OTHER_TYPE: "TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED ENUM_ARRAY_CHANGED",
    _OPEN: """REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
        OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL""",
    (
        "The %new% schema has an unopen content model and has a required property at path '{path}' which is missing in the %old% "
        "schema"
    ): "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    _CLOSED: "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    _REMOVED: """PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL""",
    _ADDED: """PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL""",
    "The schemas have too many combinations to be compared": TOO_LARGE,
}
_DESCRIPTIONS: Final = {kind: words for words, kinds in _WORDS.items() for kind in _kinds(kinds)}


class Difference(NamedTuple):
    kind: str
    path: str
    """Below the pair that was compared: properties/a. The pair itself is ''."""


def accepted(policy: str) -> frozenset[str]:
    return COMPATIBLE_WHEN_LENIENT if policy == LENIENT else COMPATIBLE


def told(difference: Difference) -> Incompatibility:
    """SCHEMA_ADDED has no words in Confluent's registry."""
    path = f"#/{difference.path}"
    words = _DESCRIPTIONS.get(difference.kind, "")
    return Incompatibility(difference.kind, words.replace("{path}", path), path)


class Findings:
    """The differences of one pair of schemas."""

    __slots__ = ("_accepted", "_broken", "differences")

    def __init__(self, accepted: frozenset[str]) -> None:
        self._accepted = accepted
        self._broken = 0
        self.differences: list[Difference] = []

    @property
    def is_compatible(self) -> bool:
        return not self._broken

    def new(self) -> Findings:
        return Findings(self._accepted)

    def add(self, kind: str, path: str = "") -> None:
        breaks = kind not in self._accepted
        self._broken += breaks
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(Difference(kind, path))
        elif breaks and self._broken <= MAX_DIFFERENCES:
            # In the place of the last one that breaks nothing, if there is one.
            for index in range(len(self.differences) - 1, -1, -1):
                if self.differences[index].kind in self._accepted:
                    self.differences[index] = Difference(kind, path)
                    return

    def take(self, inner: Findings, path: str = "") -> None:
        """What was found in a pair that lies below this one."""
        for kind, below in inner.differences:
            self.add(kind, f"{path}/{below}" if path and below else path or below)

    def broken(self) -> list[Difference]:
        return [each for each in self.differences if each.kind not in self._accepted]
