"""Why one Avro schema cannot read what another wrote: Apache Avro's SchemaCompatibility, in the words of Confluent's registry.

A pair of types is compared once. Its result stands for the pair wherever it comes again, with the path of the first time; while
a pair is compared, it is taken for compatible where it comes again inside of itself. So recursive types end.

A comparison is a generator that asks for others: `found = yield Ask(reader, writer, path)`. How deeply they ask has no bound but
the number of pairs, and no call stack grows with it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple

from penstock.schemas.avro.json_text import java_order
from penstock.schemas.avro.nodes import Array, Enum, Field, Fixed, Map, Named, Node, Record, Union
from penstock.schemas.avro.text import text_of
from penstock.schemas.model import Incompatibility, InvalidSchema

MAX_PAIRS: Final = 200_000
"""Of types that are compared; schemas of people have a few thousand."""
MAX_FOUND: Final = 1_000
"""More differences than these are not listed."""

NAME_MISMATCH: Final = "NAME_MISMATCH"
FIXED_SIZE_MISMATCH: Final = "FIXED_SIZE_MISMATCH"
MISSING_ENUM_SYMBOLS: Final = "MISSING_ENUM_SYMBOLS"
READER_FIELD_MISSING_DEFAULT_VALUE: Final = "READER_FIELD_MISSING_DEFAULT_VALUE"
TYPE_MISMATCH: Final = "TYPE_MISMATCH"
MISSING_UNION_BRANCH: Final = "MISSING_UNION_BRANCH"

_WORDS: Final = {
    NAME_MISMATCH: "The name of the schema has changed (path '{path}')",
    FIXED_SIZE_MISMATCH: "The size of FIXED type field at path '{path}' in the %new% schema does not match with the %old% schema",
    MISSING_ENUM_SYMBOLS: "The %new% schema is missing enum symbols '{said}' at path '{path}' in the %old% schema",
    READER_FIELD_MISSING_DEFAULT_VALUE: (
        "The field '{said}' at path '{path}' in the %new% schema has no default value and is missing in the %old% schema"
    ),
    TYPE_MISMATCH: "The type (path '{path}') of a field in the %new% schema does not match with the %old% schema",
    MISSING_UNION_BRANCH: (
        "The %new% schema is missing a type inside a union field at path '{path}' in the %old% schema"
    ),
}
_PROMOTED: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""What a reader of a type takes besides."""

Path = tuple[str, ...]
Found = tuple[Incompatibility, ...]


class Ask(NamedTuple):
    reader: Node
    writer: Node
    path: Path = ()


Compared = Generator[Ask, Found, Found]


def incompatibilities(reader: Node, writer: Node) -> Found:
    """Nothing: what `writer` wrote can be read. InvalidSchema when they are too large to compare, or a field of the reader has
    several fields of the writer."""
    known: dict[tuple[int, int], Found] = {}
    first = (id(reader), id(writer))
    way = [(first, _compared(reader, writer, ()))]
    answer: Found | None = None
    while way:
        pair, comparison = way[-1]
        known.setdefault(pair, ())  # compatible until it is known better
        try:
            asked = next(comparison) if answer is None else comparison.send(answer)
        except StopIteration as end:
            answer = known[pair] = end.value
            way.pop()
            continue
        asked_pair = (id(asked.reader), id(asked.writer))
        answer = known.get(asked_pair)
        if answer is None:
            if len(known) >= MAX_PAIRS:
                raise InvalidSchema(f"they have more than {MAX_PAIRS:,} pairs of types to compare")
            way.append((asked_pair, _compared(*asked)))
    return known[first]


def _compared(reader: Node, writer: Node, path: Path) -> Compared:
    if isinstance(writer, Union):
        if isinstance(reader, Union):
            return (yield from _each_branch_is_read(reader, writer, path))
        found: Found = ()
        for index, branch in enumerate(writer.branches):
            found = _joined(found, (yield Ask(reader, branch, (*path, str(index)))))
        return found
    if isinstance(reader, Union):
        for branch in reader.branches:
            if not (yield Ask(branch, writer)):
                return ()
        return (_lacking(writer, path),)
    if reader.type != writer.type:
        if writer.type in _PROMOTED.get(reader.type, ()):
            return ()
        said = f"reader type: {reader.type.upper()} not compatible with writer type: {writer.type.upper()}"
        return (_found(TYPE_MISMATCH, said, path),)
    if isinstance(reader, Array) and isinstance(writer, Array):
        return (yield Ask(reader.items, writer.items, (*path, "items")))
    if isinstance(reader, Map) and isinstance(writer, Map):
        return (yield Ask(reader.values, writer.values, (*path, "values")))
    if isinstance(reader, Named) and isinstance(writer, Named):
        found = _names(reader, writer, path)
        if isinstance(reader, Record) and isinstance(writer, Record):
            return _joined(found, (yield from _fields(reader, writer, (*path, "fields"))))
        return _joined(found, _sizes(reader, writer, path), _symbols(reader, writer, path))
    return ()


def _each_branch_is_read(reader: Union, writer: Union, path: Path) -> Compared:
    found: Found = ()
    for index, branch in enumerate(writer.branches):
        if (yield Ask(reader, branch)):
            found = _joined(found, (_lacking(branch, (*path, str(index))),))
    return found


def _fields(reader: Record, writer: Record, path: Path) -> Compared:
    found: Found = ()
    for position, field in enumerate(reader.fields.values()):
        place = (*path, str(position))
        written = _written_as(field, position, writer)
        if written is not None:
            found = _joined(found, (yield Ask(field.type, written.type, (*place, "type"))))
        elif field.has_default:
            continue
        elif isinstance(field.type, Enum) and field.type.default is not None:
            # Avro compares the enum with the whole record here, which never fits.
            found = _joined(found, (yield Ask(field.type, writer, (*place, "type"))))
        else:
            found = _joined(found, (_found(READER_FIELD_MISSING_DEFAULT_VALUE, field.name, place),))
    return found


def _written_as(field: Field, position: int, writer: Record) -> Field | None:
    names = [field.name, *field.aliases]
    fields = [writer.fields[name] for name in names if name in writer.fields]
    if len(fields) > 1:
        raise InvalidSchema(
            f"Reader record field {field.name} type:{field.type.type.upper()} pos:{position} matches multiple fields"
            f" in writer record schema {text_of(writer)}"
        )
    return fields[0] if fields else None


def _names(reader: Named, writer: Named, path: Path) -> Found:
    """Namespaces do not count, but for the aliases of the reader."""
    if reader.name.simple == writer.name.simple or writer.full_name in reader.alias_names:
        return ()
    return (_found(NAME_MISMATCH, f"expected: {writer.full_name}", (*path, "name")),)


def _sizes(reader: Named, writer: Named, path: Path) -> Found:
    if not isinstance(reader, Fixed) or not isinstance(writer, Fixed) or reader.size == writer.size:
        return ()
    said = f"expected: {writer.size}, found: {reader.size}"
    return (_found(FIXED_SIZE_MISMATCH, said, (*path, "size")),)


def _symbols(reader: Named, writer: Named, path: Path) -> Found:
    if not isinstance(reader, Enum) or not isinstance(writer, Enum) or reader.default is not None:
        return ()
    missing = set(writer.symbols).difference(reader.symbols)
    if not missing:
        return ()
    said = f"[{', '.join(sorted(missing, key=java_order))}]"
    return (_found(MISSING_ENUM_SYMBOLS, said, (*path, "symbols")),)


def _lacking(writer: Node, path: Path) -> Incompatibility:
    return _found(MISSING_UNION_BRANCH, f"reader union lacking writer type: {writer.type.upper()}", path)


def _found(kind: str, said: str, path: Path) -> Incompatibility:
    place = "/" + "/".join(each.replace("~", "~0").replace("/", "~1") for each in path)
    return Incompatibility(kind, _WORDS[kind].format(path=place, said=said), place, said)


def _joined(*each: Found) -> Found:
    found: Found = ()
    for more in each:
        found = (found + more)[:MAX_FOUND] if more else found
    return found
