"""Partition specs as text: day(at), bucket(id, 16), truncate(name, 4), country."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)

from penstock.connect.errors import InvalidConfig

_TIMES: Final[dict[str, Any]] = {
    "year": YearTransform, "month": MonthTransform, "day": DayTransform, "hour": HourTransform,
}  # fmt: skip
_FORM: Final = re.compile(r"(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*\(\s*([\w.]+)\s*(?:,\s*(\d+)\s*)?\)")


class PartitionField(NamedTuple):
    column: str
    transform: Any
    name: str


def partition_fields(text: str | None) -> list[PartitionField]:
    """InvalidConfig."""
    return [_field(part.strip()) for part in re.split(r",(?![^(]*\))", text or "") if part.strip()]


def _field(text: str) -> PartitionField:
    if re.fullmatch(r"[\w.]+", text):
        return PartitionField(text, IdentityTransform(), text)
    found = _FORM.fullmatch(text)
    if found is None:
        raise InvalidConfig(f"partition-by: {text!r} is not such as day(at), bucket(id, 16) or country")
    name, column = found[1].lower(), found[3]
    width = found[2] or found[4]
    time = _TIMES.get(name.removesuffix("s"))
    if time is not None and width is None:
        return PartitionField(column, time(), f"{column}_{name.removesuffix('s')}")
    if name == "identity" and width is None:
        return PartitionField(column, IdentityTransform(), column)
    if name == "bucket" and width is not None:
        return PartitionField(column, BucketTransform(int(width)), f"{column}_bucket")
    if name == "truncate" and width is not None:
        return PartitionField(column, TruncateTransform(int(width)), f"{column}_trunc")
    raise InvalidConfig(f"partition-by: there is no {text!r}")
