"""Which topic names are allowed, with Kafka's error messages."""

from collections.abc import Iterable

from penstock.model.errors import ApiError, ErrorCode

MAX_NAME_LENGTH = 249

_LEGAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def why_invalid(name: str) -> str | None:
    """Kafka's reason against the name, None when it may be a topic's."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.issuperset(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def is_valid(name: str) -> bool:
    return why_invalid(name) is None


def check_name(name: str) -> None:
    reason = why_invalid(name)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Metric names turn '.' into '_', so two topics that differ only there would share theirs."""
    if "." not in name and "_" not in name:
        return
    unified = name.replace(".", "_")
    for other in existing:
        if other != name and len(other) == len(name) and other.replace(".", "_") == unified:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
            )
