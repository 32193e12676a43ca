"""Values of records as documents."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

from bson.decimal128 import Decimal128

from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError


def document_of(value: Any) -> dict[str, Any]:
    """A struct, a map, or a JSON text. DataError."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise DataError(f"the text is no JSON document: {error}") from None
    found = plain(value)
    if not isinstance(found, dict):
        raise DataError(
            f"a document is made of a struct, a map or a JSON text, not of {type(value).__name__}"
        )
    return found


def plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Decimal):
        try:
            return Decimal128(value)
        except ArithmeticError:
            raise DataError("the number has more digits than a document can hold (34)") from None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if isinstance(value, dt.time):
        return dt.datetime.combine(dt.date(1970, 1, 1), value, dt.UTC)
    return value
