"""Bytes in JSON are base64, and the library takes anything for it: what is no base64 would be lost without a word."""

from __future__ import annotations

import re
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from penstock.schemas.model import InvalidValue

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}", re.ASCII)
_MAX_DEPTH: Final = 100
"""The library refuses what is deeper."""


def has_bytes(descriptor: Descriptor) -> bool:
    """Whether a message has bytes in it, or in one that it has a field of."""
    seen = {descriptor.full_name}
    waiting = [descriptor]
    while waiting:
        for field in waiting.pop().fields:
            if field.type == FieldDescriptor.TYPE_BYTES:
                return True
            inner = field.message_type
            if inner is not None and inner.full_name not in seen:
                seen.add(inner.full_name)
                waiting.append(inner)
    return False


def check_bytes(value: Any, descriptor: Descriptor, depth: int = 0) -> None:
    """InvalidValue. What does not fit in other ways is left to the library."""
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return
    for name, each in value.items():
        field = descriptor.fields_by_name.get(name) or descriptor.fields_by_camelcase_name.get(name)
        if field is not None:
            _check_field(each, field, depth)


def _check_field(value: Any, field: FieldDescriptor, depth: int) -> None:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        values = list(value.values()) if isinstance(value, dict) else []
        field = inner.fields_by_number[2]
        inner = field.message_type
    else:
        values = value if isinstance(value, list) else [value]
    if inner is not None:
        for each in values:
            check_bytes(each, inner, depth + 1)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        for each in values:
            if isinstance(each, str) and not _BASE64.fullmatch(each):
                raise InvalidValue(f"{field.full_name} must be base64")
