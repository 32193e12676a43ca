"""What settings of transforms must satisfy, beyond their type."""

from __future__ import annotations

from typing import Any, Final

from penstock.connect.errors import InvalidConfig
from penstock.connect.settings import Check
from penstock.connect.transforms.java_patterns import java_pattern


def refused(name: str, value: Any, why: str) -> InvalidConfig:
    return InvalidConfig(f"Invalid value {value} for configuration {name}: {why}")


def _empty(name: str, value: Any) -> Any:
    if value:
        return None
    return InvalidConfig(
        f"Configuration '{name}' must not be empty. Valid values include: any non-empty value"
    )


def _empty_text(name: str, value: Any) -> Any:
    return None if value else refused(name, value, "String must be non-empty")


def _bad_pattern(name: str, value: Any) -> Any:
    try:
        java_pattern(value)
    except ValueError as error:
        return refused(name, value, f"Invalid regex: {error}")
    return None


def _bad_name_pattern(name: str, value: Any) -> Any:
    return _empty_text(name, value) or _bad_pattern(name, value)


NOT_EMPTY: Final = Check("any non-empty value", _empty)
NOT_EMPTY_TEXT: Final = Check("non-empty string", _empty_text)
PATTERN: Final = Check("valid regex", _bad_pattern)
NOT_EMPTY_PATTERN: Final = Check("non-empty string, valid regex", _bad_name_pattern)
