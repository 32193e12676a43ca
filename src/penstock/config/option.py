"""One declaration per option: its name, type, default, check, whether it may change live, and a sentence.

The same declaration parses text, checks it, answers DescribeConfigs and fills the reference page. Text forms
and refusals are Kafka's, so that tools which match on them keep working:

    Invalid value abc for configuration retention.ms: Not a number of type LONG
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any

READ_ONLY = "read-only"
PER_BROKER = "per-broker"
CLUSTER_WIDE = "cluster-wide"


class Kind(IntEnum):
    """Kafka's option types; the numbers are DescribeConfigs' type codes."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.SHORT, Kind.LONG
DOUBLE, LIST, CLASS, PASSWORD = Kind.DOUBLE, Kind.LIST, Kind.CLASS, Kind.PASSWORD

DOUBLE_MAX = 1.7976931348623157e308
LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1

_INTEGER_BITS = {Kind.SHORT: 15, Kind.INT: 31, Kind.LONG: 63}


class ConfigError(ValueError):
    """A configuration that cannot be used; the text is for the person who wrote it."""


class Check:
    """What a parsed value must satisfy; `text` is for the reference page, `refusal` says why not."""

    __slots__ = ("refusal", "text")

    def __init__(self, text: str, refusal: Callable[[str, Any], ConfigError | None]) -> None:
        self.text = text
        self.refusal = refusal


class Option:
    """An option as declared.

    `honoured`: it has an effect here; otherwise it is only accepted, checked and described.
    `internal`: described only where it is set, as Kafka does with options it does not document.
    `synonyms` (topic options only): broker options it falls back to, each with the factor between the units.
    """

    __slots__ = ("check", "default", "doc", "honoured", "internal", "kind", "live", "name", "synonyms")

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Any,
        check: Check | None,
        live: str,
        doc: str,
        *,
        honoured: bool = True,
        internal: bool = False,
        synonyms: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.check = check
        self.live = live
        self.doc = doc
        self.honoured = honoured
        self.internal = internal
        self.synonyms = synonyms

    @property
    def sensitive(self) -> bool:
        return self.kind is PASSWORD

    @property
    def default_text(self) -> str | None:
        return format_value(self.kind, self.default)

    def parse(self, text: str) -> Any:
        """The typed, checked value of `text`, or ConfigError with Kafka's words."""
        value = parse_value(self.name, self.kind, text)
        if self.check is not None:
            refusal = self.check.refusal(self.name, value)
            if refusal is not None:
                raise refusal
        return value

    def format(self, value: Any) -> str | None:
        return format_value(self.kind, value)


def invalid_value(name: str, *, value: str, why: str) -> ConfigError:
    return ConfigError(f"Invalid value {value} for configuration {name}: {why}")


def parse_value(name: str, kind: Kind, text: str) -> Any:
    trimmed = text.strip()
    if kind in _INTEGER_BITS:
        return _parse_integer(name, kind, text)
    if kind is BOOLEAN:
        lowered = trimmed.lower()
        if lowered not in ("true", "false"):
            raise invalid_value(name, value=text, why="Expected value to be either true or false")
        return lowered == "true"
    if kind is DOUBLE:
        return _parse_double(name, text)
    if kind is LIST:
        return _parse_list(name, trimmed)
    return trimmed


def format_value(kind: Kind, value: Any) -> str | None:
    """Kafka's text of a typed value; None stays None (an option without a default)."""
    if value is None:
        return None
    if kind is BOOLEAN:
        return "true" if value else "false"
    if kind is DOUBLE:
        return java_double(value)
    if kind is LIST:
        return ",".join(value)
    return str(value)


def _parse_integer(name: str, kind: Kind, text: str) -> int:
    # Python's int() takes more than Java's: underscores between digits.
    try:
        value = int(text) if "_" not in text else None
    except ValueError:
        value = None
    limit = 1 << _INTEGER_BITS[kind]
    if value is None or not -limit <= value < limit:
        raise invalid_value(name, value=text, why=f"Not a number of type {kind.name}")
    return value


def _parse_double(name: str, text: str) -> float:
    trimmed = text.strip()
    if trimmed[-1:] in ("d", "D", "f", "F") and trimmed[-2:-1].isdigit():
        trimmed = trimmed[:-1]
    try:
        if not (trimmed[-1:].isdigit() or trimmed[-1:] == "." or trimmed.lstrip("+-") in ("NaN", "Infinity")):
            raise ValueError
        if "_" in trimmed:
            raise ValueError
        return float(trimmed)
    except ValueError:
        raise invalid_value(name, value=text, why="Not a number of type DOUBLE") from None


def _parse_list(name: str, trimmed: str) -> list[str]:
    if not trimmed:
        return []
    items = [item.strip() for item in trimmed.split(",")]
    if "" in items:
        raise ConfigError(f"Configuration '{name}' values must not be empty.")
    return list(dict.fromkeys(items))


def java_double(value: float) -> str:
    """A double as Java writes it: 0.5, 1.0, 1.0E10, 1.0E-4."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    power = int(exponent or 0) + len(whole) - 1 - (len(digits) - len(digits.lstrip("0")))
    digits = digits.strip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def between(low: float | None, high: float | None) -> Check:
    def refusal(name: str, value: Any) -> ConfigError | None:
        if low is not None and value < low:
            return invalid_value(name, value=_number_text(value), why=f"Value must be at least {low}")
        if high is not None and value > high:
            return invalid_value(name, value=_number_text(value), why=f"Value must be no more than {high}")
        return None

    return Check(f"[{low},...]" if high is None else f"[{low},...,{high}]", refusal)


def at_least(low: float) -> Check:
    return between(low, None)


def between_or(low: int, high: int, *, also: int) -> Check:
    def refusal(name: str, value: Any) -> ConfigError | None:
        if low <= value <= high or value == also:
            return None
        why = f"Value must be between {low} and {high} or equal to {also}"
        return invalid_value(name, value=str(value), why=why)

    return Check(f"[{low},...,{high}] or {also}", refusal)


def one_of(*allowed: str, any_case: bool = False) -> Check:
    """The value, or for a list each of its items, must be one of `allowed`."""
    folded = {item.lower() for item in allowed} if any_case else set(allowed)

    def refusal(name: str, value: Any) -> ConfigError | None:
        for item in value if isinstance(value, list) else (value,):
            if (item.lower() if any_case else item) not in folded:
                case = " (case insensitive)" if any_case else ""
                return invalid_value(
                    name, value=item, why=f"String must be one of{case}: {', '.join(allowed)}"
                )
        return None

    return Check(f"[{', '.join(allowed)}]", refusal)


def not_empty() -> Check:
    """A list with at least one item."""

    def refusal(name: str, value: Any) -> ConfigError | None:
        if value:
            return None
        return ConfigError(
            f"Configuration '{name}' must not be empty. Valid values include: any non-empty value"
        )

    return Check("not empty", refusal)


def throttled_replicas() -> Check:
    """`*`, or partition:broker pairs."""
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

    def is_pair(item: str) -> bool:
        partition, colon, broker = item.partition(":")
        return bool(colon) and partition.isdigit() and broker.isdigit()

    def refusal(name: str, value: Any) -> ConfigError | None:
        if value == ["*"] or all(map(is_pair, value)):
            return None
        why = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
        return invalid_value(name, value=f"[{', '.join(value)}]", why=why)

    return Check(form, refusal)


def _number_text(value: float) -> str:
    return java_double(value) if isinstance(value, float) else str(value)
