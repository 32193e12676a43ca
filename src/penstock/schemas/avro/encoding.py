"""Values in JSON become Avro's bytes.

The form is Avro's JSON encoding: bytes and fixed as strings of the characters 0 to 255, a value of a union as {"branch": value}.
Besides, a value of a union may stand plainly when one branch only fits it as far as one sees from outside, a field that has a
default may be left out, and bytes may be bytes. Logical types are their plain ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NoReturn

from penstock.schemas.avro.json_text import shown
from penstock.schemas.avro.nodes import MAX_VALUE_DEPTH, Array, Enum, Field, Fixed, Map, Node, Record, Union
from penstock.schemas.model import InvalidSchema, InvalidValue


class Out(bytearray):
    """What is written so far, and in how many arrays, maps and records that ends."""

    depth = 0

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_VALUE_DEPTH:
            raise _Unfit(f"the value is nested more than {MAX_VALUE_DEPTH} deep")


Encode = Callable[[Any, Out], None]

WORDS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Numbers that JSON has no form of."""
MAX_DEFAULT_BYTES: Final = 1 << 20
"""Of one field that is left out."""
_BITS: Final = {"int": 32, "long": 64}
_FLOATS: Final = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}
_MAX_BYTE: Final = "\xff"


class _Unfit(Exception):
    """`place` grows on the way out."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.place: list[str] = []


class Encoder:
    """Of one schema. Threads may share it."""

    def __init__(self, root: Node) -> None:
        try:
            self._encode = _Making(_Making()).of(root)
        except RecursionError:
            raise InvalidSchema("its types are nested too deeply") from None

    def encode(self, value: Any) -> bytes:
        out = Out()
        try:
            self._encode(value, out)
        except _Unfit as unfit:
            place = "".join(reversed(unfit.place))
            raise InvalidValue(f"{place.lstrip('.') or 'the value'}: {unfit.reason}") from None
        except RecursionError:
            raise InvalidValue("the value is nested too deeply") from None
        return bytes(out)


class _Making:
    """`defaults` makes those of defaults in the schema, where no branch of a union is named; None: this one does."""

    def __init__(self, defaults: _Making | None = None) -> None:
        self._is_default = defaults is None
        self._defaults = defaults or self
        self._made: dict[int, Encode] = {}

    def of(self, node: Node) -> Encode:
        key = id(node)
        if key not in self._made:
            # A type that contains itself asks for itself while it is made: when values come, it is here.
            self._made[key] = lambda value, out: self._made[key](value, out)
            self._made[key] = self._make(node)
        return self._made[key]

    def _make(self, node: Node) -> Encode:
        if isinstance(node, Union):
            return self._union(node)
        if isinstance(node, Record):
            return self._record(node)
        if isinstance(node, Array):
            return _array(self.of(node.items))
        if isinstance(node, Map):
            return _map(self.of(node.values))
        if isinstance(node, Enum):
            return _enum(node)
        if isinstance(node, Fixed):
            return _fixed(node.size)
        if node.type in _BITS:
            return _integer(node.type)
        return _float(node.type) if node.type in _FLOATS else _PLAIN[node.type]

    def _union(self, node: Union) -> Encode:
        is_default = self._is_default
        branches = [(_varint(index), self.of(branch)) for index, branch in enumerate(node.branches)]
        by_name = {branch.full_name: number for number, branch in enumerate(node.branches)}
        null = by_name.get("null")

        def encode(value: Any, out: Out) -> None:
            if value is None and null is not None:
                out += branches[null][0]
                return
            if isinstance(value, dict) and len(value) == 1 and not is_default:
                [(name, inner)] = value.items()
                if name in by_name:
                    index, encode_branch = branches[by_name[name]]
                    out += index
                    _at(f".{name}", encode_branch, inner, out)
                    return
            fitting = _fitting(value, node.branches)
            if not fitting or (len(fitting) > 1 and not is_default):
                _fail_union(value, node, fitting)
            index, encode_branch = branches[fitting[0]]
            out += index
            encode_branch(value, out)

        return encode

    def _default(self, field: Field) -> Encode:
        """Made once: records whose defaults leave out records, which leave out others twice, would be made without end."""
        encode_default = self._defaults.of(field.type)
        made: list[bytes] = []

        def encode(value: Any, out: Out) -> None:
            if not made:
                default = Out()
                default.depth = out.depth
                encode_default(field.default, default)
                if len(default) > MAX_DEFAULT_BYTES:
                    raise _Unfit(f"the default has more than {MAX_DEFAULT_BYTES:,} bytes")
                made.append(bytes(default))
            out += made[0]

        return encode

    def _record(self, node: Record) -> Encode:
        fields = [
            (
                field,
                self.of(field.type),
                self._default(field) if field.has_default else None,
                f".{field.name}",
            )
            for field in node.fields.values()
        ]

        def encode(value: Any, out: Out) -> None:
            if not isinstance(value, dict):
                _fail(value, f"an object, for {node.full_name}")
            out.deeper()
            known = 0
            for field, encode_field, default, place in fields:
                if field.name in value:
                    known += 1
                    _at(place, encode_field, value[field.name], out)
                elif default is not None:
                    _at(place, default, None, out)
                else:
                    raise _Unfit(f"{node.full_name} needs the field {field.name}")
            if known < len(value):
                unknown = next(name for name in value if name not in node.fields)
                raise _Unfit(f"{node.full_name} has no field {unknown}")
            out.depth -= 1

        return encode


def _at(place: str, encode: Encode, value: Any, out: Out) -> None:
    try:
        encode(value, out)
    except _Unfit as unfit:
        unfit.place.append(place)
        raise


def _fail(value: Any, wanted: str) -> NoReturn:
    raise _Unfit(f"{_shown(value)} is not {wanted}")


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, bytes) else shown(value)


def _fail_union(value: Any, node: Union, fitting: list[int]) -> NoReturn:
    names = [node.branches[number].full_name for number in fitting] or [
        each.full_name for each in node.branches
    ]
    if fitting:
        raise _Unfit(f'{_shown(value)} fits {" and ".join(names)}: say which, as {{"{names[0]}": …}}')
    _fail(value, f"one of {', '.join(names)}")


def _varint(value: int) -> bytes:
    out = bytearray()
    _write_long(value, out)
    return bytes(out)


def _write_long(value: int, out: bytearray) -> None:
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)


def _integer(type_: str) -> Encode:
    top = 1 << (_BITS[type_] - 1)

    def encode(value: Any, out: Out) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not -top <= value < top:
            _fail(value, f"an {type_}" if type_ == "int" else f"a {type_}")
        _write_long(value, out)

    return encode


def _float(type_: str) -> Encode:
    pack = _FLOATS[type_].pack

    def encode(value: Any, out: Out) -> None:
        number = WORDS.get(value) if isinstance(value, str) else value
        if not isinstance(number, (int, float)) or isinstance(number, bool):
            _fail(value, f"a {type_}")
        try:
            out += pack(number)
        except (OverflowError, struct.error):
            _fail(value, f"a {type_}")

    return encode


def _null(value: Any, out: Out) -> None:
    if value is not None:
        _fail(value, "null")


def _boolean(value: Any, out: Out) -> None:
    if not isinstance(value, bool):
        _fail(value, "a boolean")
    out.append(value)


def _string(value: Any, out: Out) -> None:
    if not isinstance(value, str):
        _fail(value, "a string")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise _Unfit("the string has half of a character (a surrogate without its other half)") from None
    _write_long(len(data), out)
    out += data


def _bytes(value: Any, out: Out) -> None:
    data = _bytes_of(value)
    if data is None:
        _fail(value, "bytes, which are a string of the characters \\u0000 to \\u00FF")
    _write_long(len(data), out)
    out += data


def _bytes_of(value: Any) -> bytes | None:
    if isinstance(value, str) and (value.isascii() or max(value) <= _MAX_BYTE):
        return value.encode("latin-1")
    return value if isinstance(value, bytes) else None


_PLAIN: Final[dict[str, Encode]] = {"null": _null, "boolean": _boolean, "string": _string, "bytes": _bytes}


def _fixed(size: int) -> Encode:
    def encode(value: Any, out: Out) -> None:
        data = _bytes_of(value)
        if data is None or len(data) != size:
            _fail(value, f"{size} bytes, which are a string of the characters \\u0000 to \\u00FF")
        out += data

    return encode


def _enum(node: Enum) -> Encode:
    indexes = {symbol: _varint(index) for index, symbol in enumerate(node.symbols)}

    def encode(value: Any, out: Out) -> None:
        index = indexes.get(value) if isinstance(value, str) else None
        if index is None:
            _fail(value, f"a symbol of {node.full_name}")
        out += index

    return encode


def _array(encode_item: Encode) -> Encode:
    def encode(value: Any, out: Out) -> None:
        if not isinstance(value, list):
            _fail(value, "an array")
        out.deeper()
        if value:
            _write_long(len(value), out)
            number = 0
            try:
                for number, each in enumerate(value):  # noqa: B007
                    encode_item(each, out)
            except _Unfit as unfit:
                unfit.place.append(f"[{number}]")
                raise
        out.append(0)
        out.depth -= 1

    return encode


def _map(encode_value: Encode) -> Encode:
    def encode(value: Any, out: Out) -> None:
        if not isinstance(value, dict):
            _fail(value, "an object, for a map")
        out.deeper()
        if value:
            _write_long(len(value), out)
            for key, each in value.items():
                _string(key, out)
                _at(f".{key}", encode_value, each, out)
        out.append(0)
        out.depth -= 1

    return encode


def _fitting(value: Any, branches: list[Node]) -> list[int]:
    """Which branches a value fits that does not say it. An integer is for int and long, if there are such."""
    found = [number for number, branch in enumerate(branches) if _fits(value, branch)]
    if not found and isinstance(value, int) and not isinstance(value, bool):
        return [number for number, branch in enumerate(branches) if branch.type in _FLOATS]
    return found


def _fits(value: Any, node: Node) -> bool:
    """As far as one sees from outside: what is in an array, an object or a map is not looked at."""
    if value is None or isinstance(value, bool):
        return node.type == ("null" if value is None else "boolean")
    if isinstance(value, int):
        bits = _BITS.get(node.type)
        return bits is not None and -(1 << (bits - 1)) <= value < 1 << (bits - 1)
    if isinstance(value, float):
        return node.type in _FLOATS
    if isinstance(value, (str, bytes)):
        if isinstance(node, Enum):
            return value in node.symbols
        if isinstance(node, Fixed) or node.type == "bytes":
            data = _bytes_of(value)
            return data is not None and (not isinstance(node, Fixed) or len(data) == node.size)
        return node.type == "string" and isinstance(value, str)
    if isinstance(value, list):
        return isinstance(node, Array)
    if isinstance(value, dict) and isinstance(node, Record):
        return all(name in node.fields for name in value) and all(
            field.has_default or field.name in value for field in node.fields.values()
        )
    return isinstance(value, dict) and isinstance(node, Map)
