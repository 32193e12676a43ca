"""Writes the source of the functions that read and write one struct in one version, and compiles it once.

Neighbouring fields of fixed width, and the length that follows them, go through one `struct.Struct`. In the
source `b` is the buffer, `o` the offset, `n` the end of the buffer, `m` the message, `k` a length or a count
(-1 is null). A length must fit in what is left before anything is made of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from penstock.wire.primitives import MAX_STRING_BYTES, RUNTIME
from penstock.wire.schema import Field, Struct

DecodeStruct: TypeAlias = Callable[[bytes, int, int], tuple[Any, int]]
EncodeStruct: TypeAlias = Callable[[Any, bytearray], None]

# The code of `struct` and the size in bytes.
_FIXED = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}

# Arrays of fewer integers, such as the replicas of a partition, have their layouts available.
_SHORT_ARRAY = 8

decoders: dict[tuple[type[Struct], int], DecodeStruct] = {}
encoders: dict[tuple[type[Struct], int], EncodeStruct] = {}


def decoder(cls: type[Struct], version: int) -> DecodeStruct:
    found = decoders.get((cls, version))
    if found is None:
        found = decoders[cls, version] = _Decoder(cls, version).build()
    return found


def encoder(cls: type[Struct], version: int) -> EncodeStruct:
    found = encoders.get((cls, version))
    if found is None:
        found = encoders[cls, version] = _Encoder(cls, version).build()
    return found


@cache
def _layouts(code: str) -> list[struct.Struct]:
    return [struct.Struct(f">{count}{code}") for count in range(_SHORT_ARRAY)]


def _least_size_bytes(cls: type[Struct], version: int) -> int:
    """No struct of this version is shorter, so a count of more of them than fit is a lie."""
    flexible = version >= cls.FLEXIBLE_FROM
    least = 1 if flexible else 0
    for _, kind, (first, last), nullable, tag, _, nested in cls.FIELDS:
        if tag is not None or not first <= version <= last:
            continue
        if kind in _FIXED:
            least += _FIXED[kind][1]
        elif kind == "struct":
            assert nested is not None
            is_nullable = nullable is not None and nullable[0] <= version <= nullable[1]
            least += 1 if is_nullable else _least_size_bytes(nested, version)
        elif kind == "legacy_string" or (kind == "string" and not flexible):
            least += 2
        else:
            least += 1 if flexible else 4
    return max(least, 1)


class _Source:
    """What the two writers share: lines, a namespace, and the run of fixed fields not yet written."""

    def __init__(self, cls: type[Struct], version: int) -> None:
        first, last = cls.VERSIONS
        if not first <= version <= last:
            raise ValueError(f"{cls.__name__} has versions {first} to {last}, not {version}")
        self.cls = cls
        self.version = version
        self.flexible = version >= cls.FLEXIBLE_FROM
        self.lines: list[str] = []
        self.indent = 1
        self.run: list[tuple[str, str]] = []
        self.names: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, value: object) -> str:
        """A name for a value in the function's namespace."""
        name = f"x{len(self.names)}"
        self.names[name] = value
        return name

    def has(self, field: Field) -> bool:
        return field[2][0] <= self.version <= field[2][1]

    def is_nullable(self, field: Field) -> bool:
        return field[3] is not None and field[3][0] <= self.version <= field[3][1]

    def default(self, field: Field) -> str:
        default, nested = field[5], field[6]
        if nested is not None and default is None and not field[1].startswith("[]") and field[3] is None:
            return f"{self.name(nested)}()"
        return self.name(default)

    def tagged(self) -> list[Field]:
        return sorted((one for one in self.cls.FIELDS if one[4] is not None and self.has(one)), key=_tag)

    def plain(self) -> list[Field]:
        return [one for one in self.cls.FIELDS if one[4] is None and self.has(one)]

    def compiled(self, signature: str, purpose: str) -> Any:
        source = "\n".join([f"def {purpose}{signature}:", *self.lines])
        namespace = {**RUNTIME, **self.names}
        exec(compile(source, f"<{purpose} {self.cls.__name__} {self.version}>", "exec"), namespace)
        return namespace[purpose]


def _tag(field: Field) -> int:
    assert field[4] is not None
    return field[4]


class _Decoder(_Source):
    def build(self) -> DecodeStruct:
        self.line(f"m = new({self.name(self.cls)})")
        for field in self.plain():
            self.read(field)
        self.flush()
        for field in self.cls.FIELDS:
            if field[4] is not None or not self.has(field):
                self.line(f"m.{field[0]} = {self.default(field)}")
        if self.flexible:
            self.read_tags()
        self.line("return m, o")
        built: DecodeStruct = self.compiled("(b, o, n)", "decode")
        return built

    def flush(self) -> None:
        if self.run:
            layout = struct.Struct(">" + "".join(code for code, _ in self.run))
            targets = "".join(f"{target}, " for _, target in self.run)
            self.line(f"{targets}= {self.name(layout.unpack_from)}(b, o)")
            self.line(f"o += {layout.size}")
            self.run = []

    def read_length(self, width: str) -> None:
        """Sets k; -1 is null."""
        if width:
            self.run.append((width, "k"))
            self.flush()
            return
        self.flush()
        self.line("k = b[o]")
        self.line("o += 1")
        self.line("if k > 127:")
        self.line("    k, o = read_uvarint(b, o - 1)")
        self.line("k -= 1")

    def read(self, field: Field) -> None:
        name, kind, _, _, tag, _, nested = field
        if kind in _FIXED:
            self.run.append((_FIXED[kind][0], f"m.{name}"))
            return
        nullable = self.is_nullable(field)
        if kind == "struct":
            self.flush()
            assert nested is not None
            read = self.name(decoder(nested, self.version))
            if nullable:
                # KIP-893: a byte below zero is null; in a tagged field it is zero.
                self.line("k = b[o]")
                self.line("o += 1")
                self.line("if k > 127:" if tag is None else "if k == 0:")
                self.line(f"    m.{name} = None")
                self.line("else:")
                self.line(f"    m.{name}, o = {read}(b, o, n)")
            else:
                self.line(f"m.{name}, o = {read}(b, o, n)")
            return
        if self.flexible and kind != "legacy_string":
            self.read_length("")
        else:
            self.read_length("h" if kind.endswith("string") and not kind.startswith("[]") else "i")
        if nullable:
            self.line("if k == -1:")
            self.line(f"    m.{name} = None")
            self.line("else:")
            self.indent += 1
        self.read_body(name, kind, nested)
        if nullable:
            self.indent -= 1

    def read_body(self, name: str, kind: str, nested: type[Struct] | None) -> None:
        """What follows a length, k."""
        complain = f"    raise wrong_length({self.name(f'{self.cls.__name__}.{name}')}, k)"
        if not kind.startswith("[]"):
            text = kind.endswith("string")
            self.line("e = o + k")
            self.line(f"if not 0 <= k <= {MAX_STRING_BYTES} or e > n:" if text else "if k < 0 or e > n:")
            self.line(complain)
            self.line(f"m.{name} = b[o:e].decode()" if text else f"m.{name} = b[o:e]")
            self.line("o = e")
            return
        item = kind[2:]
        if item in _FIXED:
            code, size = _FIXED[item]
            self.line(f"e = o + k * {size}")
            self.line("if k < 0 or e > n:")
            self.line(complain)
            if item == "uuid":
                self.line(f"m.{name} = [b[i : i + 16] for i in range(o, e, 16)]")
            else:
                layouts = self.name([layout.unpack_from for layout in _layouts(code)])
                many = f'unpack_from(f">{{k}}{code}", b, o)'
                self.line(f"m.{name} = list({layouts}[k](b, o) if k < {_SHORT_ARRAY} else {many})")
            self.line("o = e")
            return
        least = _least_size_bytes(nested, self.version) if nested else 1 if self.flexible else 2
        self.line(f"if k < 0 or k * {least} > n - o:")
        self.line(complain)
        if nested:
            self.line(f"m.{name} = a = []")
            self.line("for _ in range(k):")
            self.line(f"    v, o = {self.name(decoder(nested, self.version))}(b, o, n)")
            self.line("    a.append(v)")
        else:
            read = "read_compact_strings" if self.flexible else "read_legacy_strings"
            self.line(f"m.{name}, o = {read}(b, o, n, k)")

    def read_tags(self) -> None:
        self.line("k = b[o]")
        self.line("o += 1")
        self.line("if k:")
        fields = self.tagged()
        if not fields:
            self.line("    o = skip_tags(b, o - 1, n)")
            return
        self.indent += 1
        self.line("k, o = read_uvarint(b, o - 1)")
        self.line("for _ in range(k):")
        self.indent += 1
        self.line("t, o, z = read_tag(b, o, n)")
        for field in fields:
            self.line(f"if t == {field[4]}:")
            self.indent += 1
            self.read(field)
            self.flush()
            self.line("if o != z:")
            self.line(f"    raise wrong_size({self.name(f'{self.cls.__name__}.{field[0]}')})")
            self.indent -= 1
        self.line("o = z")
        self.indent -= 2


class _Encoder(_Source):
    out = "out"

    def build(self) -> EncodeStruct:
        for field in self.plain():
            self.write(field)
        self.flush()
        if self.flexible:
            self.write_tags()
        if not self.lines:
            self.line("pass")
        built: EncodeStruct = self.compiled("(m, out)", "encode")
        return built

    def flush(self) -> None:
        if self.run:
            layout = struct.Struct(">" + "".join(code for code, _ in self.run))
            self.line(f"{self.out} += {self.name(layout.pack)}({', '.join(value for _, value in self.run)})")
            self.run = []

    def write(self, field: Field) -> None:
        name, kind, _, _, _, _, nested = field
        if kind in _FIXED:
            self.run.append((_FIXED[kind][0], f"m.{name}"))
        elif kind == "struct":
            assert nested is not None
            self.flush()
            write = self.name(encoder(nested, self.version))
            self.line(f"v = m.{name}")
            if self.is_nullable(field):
                self.line("if v is None:")
                self.line(f"    {self.out}.append(255)")
                self.line("else:")
                self.line(f"    {self.out}.append(1)")
                self.line(f"    {write}(v, {self.out})")
            else:
                self.line(f"{write}({self.name(nested)}() if v is None else v, {self.out})")
        elif kind.startswith("[]"):
            self.write_array(field)
        else:
            self.write_text_or_bytes(field)

    def write_text_or_bytes(self, field: Field) -> None:
        name, kind = field[:2]
        text = kind.endswith("string")
        compact = self.flexible and kind != "legacy_string"
        null = (0 if compact else -1) if self.is_nullable(field) else (1 if compact else 0)
        value = f"v{len(self.lines)}"
        self.line(f"{value} = m.{name}")
        self.line(f"if {value} is None:")
        self.line(f'    k{value} = {null}; {value} = b""')
        self.line("else:")
        if text:
            self.line(f"    {value} = {value}.encode()")
        self.line(f"    k{value} = len({value}){' + 1' if compact else ''}")
        if compact:
            self.flush()
            longer = "long_string_length" if text else "uvarint"
            self.line(f"{self.out} += UVARINTS[k{value}] if k{value} < 128 else {longer}(k{value})")
        else:
            self.run.append(("h" if text else "i", f"k{value}"))
            self.flush()
        self.line(f"{self.out} += {value}")

    def write_array(self, field: Field) -> None:
        name, kind, _, _, _, _, nested = field
        item = kind[2:]
        # None is the length that stands for null, or for empty where null has no form.
        null = (0 if self.flexible else -1) if self.is_nullable(field) else (1 if self.flexible else 0)
        self.line(f"a = m.{name}")
        self.line("if a is None:")
        self.line(f"    k = {null}; a = ()")
        self.line("else:")
        self.line(f"    k = len(a){' + 1' if self.flexible else ''}")
        if self.flexible:
            self.flush()
            self.line(f"{self.out} += UVARINTS[k] if k < 128 else uvarint(k)")
        else:
            self.run.append(("i", "k"))
            self.flush()
        if nested:
            self.line("for v in a:")
            self.line(f"    {self.name(encoder(nested, self.version))}(v, {self.out})")
        elif item == "uuid":
            self.line(f'{self.out} += b"".join(a)')
        elif item in _FIXED:
            code = _FIXED[item][0]
            layouts = self.name([layout.pack for layout in _layouts(code)])
            many = f'pack(f">{{len(a)}}{code}", *a)'
            self.line("if a:")
            self.line(f"    {self.out} += {layouts}[len(a)](*a) if len(a) < {_SHORT_ARRAY} else {many}")
        else:
            write = "write_compact_strings" if self.flexible else "write_legacy_strings"
            self.line(f"{write}(a, {self.out})")

    def is_given(self, field: Field) -> str:
        """An expression that is true where the field must be written, as its value is not the default."""
        name, kind, _, _, _, default, nested = field
        if default is None and (nested is None or self.is_nullable(field) or kind.startswith("[]")):
            return f"m.{name} is not None"
        if kind.startswith("[]"):
            return f"(m.{name} is None or m.{name})" if self.is_nullable(field) else f"m.{name}"
        if kind == "struct":
            assert nested is not None
            return f"(m.{name} is not None and m.{name} != {self.name(nested())})"
        return f"m.{name} != {self.name(default)}"

    def write_tags(self) -> None:
        fields = self.tagged()
        if not fields:
            self.line("out.append(0)")
            return
        given = [self.is_given(field) for field in fields]
        self.line(f"if {' or '.join(given)}:")
        self.indent += 1
        self.line("c = 0")
        self.line("tags = bytearray()")
        self.out = "w"
        for field, condition in zip(fields, given, strict=True):
            self.line(f"if {condition}:")
            self.indent += 1
            self.line("w = bytearray()")
            self.write(field)
            self.flush()
            self.line("c += 1")
            self.line(f"tags += uvarint({field[4]})")
            self.line("tags += uvarint(len(w))")
            self.line("tags += w")
            self.indent -= 1
        self.line("out += uvarint(c)")
        self.line("out += tags")
        self.indent -= 1
        self.line("else:")
        self.line("    out.append(0)")
