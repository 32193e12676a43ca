"""Options in a fixed form: sorted by name, extensions with their full names, `(name).part = 1` as a message."""

from __future__ import annotations

import re

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _Proto

from penstock.schemas.protobuf.elements import Option, OptionValue, Word
from penstock.schemas.protobuf.linking import Names

_REPEATED = _Proto.LABEL_REPEATED
_PLAIN = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]*))?[fF]?", re.ASCII)


def normal_options(options: list[Option], scope: str, names: Names) -> list[Option]:
    by_name: dict[str, list[Option]] = {}
    for option in sorted((_full(each, scope, names) for each in options), key=lambda each: each.name):
        by_name.setdefault(option.name, []).append(option)
    result: list[Option] = []
    for name, same in by_name.items():
        field = names.extensions.get(name) if same[0].extension else None
        if field is None or field.label == _REPEATED:
            result += [Option(each.name, _normal(each.value), each.extension) for each in same]
            continue
        value = same[0].value
        for each in same[1:]:
            value = _merged(field, value, each.value, names)
        result.append(Option(name, _normal(value), True))
    return result


def _full(option: Option, scope: str, names: Names) -> Option:
    full = names.extension(option.name, scope) if option.extension else None
    if full is None:
        return Option(option.name, _with_full_names(option.value, scope, names), option.extension)
    return Option(full, _with_full_names(_as_message(option.value), scope, names), True)


def _with_full_names(value: OptionValue, scope: str, names: Names) -> OptionValue:
    """Of extensions in brackets."""
    if isinstance(value, list):
        return [_with_full_names(each, scope, names) for each in value]
    if isinstance(value, dict):
        return {
            full_key(name, scope, names): _with_full_names(each, scope, names) for name, each in value.items()
        }
    return value


def full_key(name: str, scope: str, names: Names) -> str:
    """`[some.extension]` with its full name; others as they are."""
    if name[:1] != "[":
        return name
    full = names.extension(name[1:-1], scope)
    return name if full is None else f"[{full}]"


def _as_message(value: OptionValue) -> OptionValue:
    """`(a).b.c = 1` says the same as `(a) = { b: { c: 1 } }`."""
    if not isinstance(value, Option):
        return value
    name = f"[{value.name.removeprefix('.')}]" if value.extension else value.name
    return {name: _as_message(value.value)}


def _merged(field: _Proto | None, held: OptionValue, more: OptionValue, names: Names) -> OptionValue:
    """What is said of one field in two places. Of a field that is not known it is taken that it is repeated."""
    if field is None or field.label == _REPEATED:
        values = [*_as_list(held), *_as_list(more)]
        return [value for index, value in enumerate(values) if value not in values[:index]]
    if not (isinstance(held, dict) and isinstance(more, dict)):
        return more
    message = names.message(field.type_name[1:])
    fields = {each.name: each for each in message.field} if message is not None else {}
    merged = dict(held)
    for name, value in more.items():
        merged[name] = _merged(fields.get(name), merged[name], value, names) if name in merged else value
    return merged


def _as_list(value: OptionValue) -> list[OptionValue]:
    return value if isinstance(value, list) else [value]


def _normal(value: OptionValue) -> OptionValue:
    if isinstance(value, Word):
        return Word(_number(value.text))
    if isinstance(value, dict):
        shown = {name: each for name, each in value.items() if each != []}
        return {name: _normal(shown[name]) for name in sorted(shown)}
    if isinstance(value, list):
        values = [_normal(each) for each in value]
        return values[0] if len(values) == 1 else values
    if isinstance(value, Option):
        return Option(value.name, _normal(value.value), value.extension)
    return value


def _number(text: str) -> str:
    """In decimal, and without a fraction that is zero."""
    if text[:1] == "-" and text[1:2].isdigit():
        return "-" + _number(text[1:])
    if text[:2] in ("0x", "0X"):
        return str(int(text, 16))
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return text
    fraction = (plain[2] or "").rstrip("0")
    return f"{plain[1]}.{fraction}" if fraction else plain[1]
