"""What holds for every message in every version, with kio's own writer as the witness."""

import dataclasses
import importlib
import pkgutil
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

import penstock.wire.messages
from penstock.wire.codec import decode, encode
from penstock.wire.errors import Malformed
from penstock.wire.schema import Field, Message, Struct

SEEDED_EXAMPLES = 3
BY_HAND = {
    4,
    5,
    6,
    7,
}  # ended with Kafka 3.9, so kio does not have them: test_messages_by_hand.py has other witnesses
STANDALONE = {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment", "RequestHeader", "ResponseHeader"}
OUR_TAGS = 10000  # from here on tagged fields are ours, which kio does not know
INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def top_level() -> Iterator[type[Struct]]:
    for module_info in pkgutil.iter_modules(penstock.wire.messages.__path__):
        module = importlib.import_module(f"penstock.wire.messages.{module_info.name}")
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        for cls in classes:
            if (issubclass(cls, Message) and cls is not Message) or cls.__name__ in STANDALONE:
                yield cls


TOP_LEVEL = list(top_level())
OF_KIO = [cls for cls in TOP_LEVEL if not (issubclass(cls, Message) and cls.API_KEY in BY_HAND)]
EVERY_VERSION = [(cls, version) for cls in OF_KIO for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1)]
each_message = pytest.mark.parametrize("cls", TOP_LEVEL, ids=lambda cls: cls.__name__)
each_message_of_kio = pytest.mark.parametrize("cls", OF_KIO, ids=lambda cls: cls.__name__)


def within(versions: tuple[int, int] | None, version: int) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]


# Any value of a struct in a version: fields that the version lacks stay at their defaults.
def values_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    _, kind, _, nullable, _, _, nested = field
    item = kind.removeprefix("[]")
    strategy: st.SearchStrategy[Any]
    if item in INTEGER_BITS:
        bits = INTEGER_BITS[item] - 1
        strategy = st.integers(-(1 << bits), (1 << bits) - 1)
    elif item == "struct":
        assert nested is not None
        strategy = structs(nested, version)
    else:
        strategy = {
            "bool": st.booleans(),
            "uint16": st.integers(0, 65535),
            "float64": st.floats(allow_nan=False),
            "string": st.text(max_size=5),
            "legacy_string": st.text(max_size=5),
            "bytes": st.binary(max_size=5),
            "records": st.binary(max_size=5),
            "uuid": st.binary(min_size=16, max_size=16),
        }[item]
    if kind.startswith("[]"):
        strategy = st.lists(strategy, max_size=2)
    return st.none() | strategy if within(nullable, version) else strategy


def structs(cls: type[Struct], version: int) -> st.SearchStrategy[Struct]:
    present = {field[0]: values_of(field, version) for field in cls.FIELDS if within(field[2], version)}
    return st.builds(cls, **present)


# A message of ours and the same message of kio's, made side by side from one seed.
def kio_class(cls: type[Struct], version: int) -> Any:
    api = cls.__module__.rpartition(".")[2]
    package = importlib.import_module(f"kio.schema.{api}.v{version}")
    for part in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{part.name}")
        if hasattr(module, cls.__name__) and getattr(module, cls.__name__).__module__ == module.__name__:
            return getattr(module, cls.__name__)
    raise LookupError(f"kio has no {cls.__name__} of version {version}")


def kio_item_type(annotation: Any) -> Any:
    """The dataclass inside `tuple[…]` and `| None`."""
    while not dataclasses.is_dataclass(annotation):
        annotation = next(one for one in annotation.__args__ if one is not type(None))
    return annotation


def pair_of_scalars(kafka_type: str, random: Random) -> tuple[Any, Any]:
    if kafka_type in INTEGER_BITS:
        bits = INTEGER_BITS[kafka_type] - 1
        value = random.choice([0, -1, 1, random.randrange(-(1 << bits), 1 << bits)])
        return value, value
    if kafka_type == "error_code":
        error = random.choice(list(ErrorCode))
        return error.value, error
    if kafka_type in ("timedelta_i32", "timedelta_i64"):
        milliseconds = random.choice([0, -1, random.randrange(1 << 31)])
        return milliseconds, timedelta(milliseconds=milliseconds)
    if kafka_type == "datetime_i64":
        seconds = random.randrange(1 << 31)
        return seconds * 1000, datetime.fromtimestamp(seconds, UTC)
    if kafka_type == "uuid":
        raw = random.choice([bytes(16), random.randbytes(16)])
        return raw, uuid.UUID(bytes=raw) if any(raw) else None
    if kafka_type in ("bytes", "records"):
        raw = random.randbytes(random.choice([0, 3, 200]))
        return raw, raw
    other: Any = {
        "bool": random.random() < 0.5,
        "uint16": random.randrange(65536),
        "float64": random.uniform(-1e9, 1e9),
        "string": random.choice(["", "a", "żółć", "s" * 126, "s" * 127, "s" * 300]),
    }[kafka_type]
    return other, other


def pair_of_fields(row: Field, theirs: Any, random: Random, version: int) -> tuple[Any, Any]:
    _, kind, _, nullable, tag, default, nested = row
    kafka_type = theirs.metadata.get("kafka_type")
    if within(nullable, version) and random.random() < 0.3 and (tag is None or default is None):
        return None, None
    if kafka_type == "datetime_i64" and theirs.default is None and random.random() < 0.3:
        return -1, None

    def one() -> tuple[Any, Any]:
        if nested is not None:
            return pair_of_structs(nested, kio_item_type(theirs.type), random, version)
        return pair_of_scalars(kafka_type, random)

    if not kind.startswith("[]"):
        return one()
    items = [one() for _ in range(random.choice([0, 1, 2]))]
    return [ours for ours, _ in items], tuple(kios for _, kios in items)


def pair_of_structs(cls: type[Struct], kio_cls: Any, random: Random, version: int) -> tuple[Struct, Any]:
    rows = {row[0]: row for row in cls.FIELDS if within(row[2], version) and (row[4] or 0) < OUR_TAGS}
    ours, kios = {}, {}
    for theirs in dataclasses.fields(kio_cls):
        in_milliseconds = theirs.metadata.get("kafka_type", "").startswith(("timedelta", "datetime"))
        name = theirs.name.rstrip("_") + ("_ms" if in_milliseconds else "")
        ours[name], kios[theirs.name] = pair_of_fields(rows.pop(name), theirs, random, version)
    assert not rows, f"kio has no {sorted(rows)} in {cls.__name__} version {version}"
    return cls(**ours), kio_cls(**kios)


def test_there_is_a_message_for_every_api_of_kio() -> None:
    known = {cls.API_KEY for cls in OF_KIO if issubclass(cls, Message)}
    assert known == set(importlib.import_module("kio.schema.index").api_key_map)
    assert all(issubclass(cls, Message) == (cls.__name__ not in STANDALONE) for cls in TOP_LEVEL)


@each_message_of_kio
def test_every_version_is_written_byte_for_byte_as_kio_writes_it(cls: type[Struct]) -> None:
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        kio_cls = kio_class(cls, version)
        assert kio_cls.__flexible__ == (version >= cls.FLEXIBLE_FROM)
        write = entity_writer(kio_cls)
        for seed in range(SEEDED_EXAMPLES):
            ours, kios = pair_of_structs(cls, kio_cls, Random(f"{cls.__name__} {version} {seed}"), version)
            buffer = BytesIO()
            write(buffer, kios)
            wire = buffer.getvalue()
            assert encode(ours, version) == wire, (version, seed)
            assert decode(cls, version, wire) == (ours, len(wire)), (version, seed)


@each_message
def test_what_is_written_is_read_again(cls: type[Struct]) -> None:
    @settings(max_examples=5, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def round_trip(data: st.DataObject) -> None:
        version = data.draw(st.integers(*cls.VERSIONS), "version")
        message = data.draw(structs(cls, version), "message")
        wire = encode(message, version)
        assert decode(cls, version, bytearray(b"\x55" + wire + b"\x55"), 1) == (message, 1 + len(wire))

    round_trip()


@each_message_of_kio
def test_a_message_that_is_cut_off_is_malformed(cls: type[Struct]) -> None:
    for version in {cls.VERSIONS[0], cls.VERSIONS[1]}:
        message, _ = pair_of_structs(cls, kio_class(cls, version), Random(version), version)
        wire = encode(message, version)
        for end in {*range(min(len(wire), 40)), *range(40, len(wire), 7)}:
            with pytest.raises(Malformed):
                decode(cls, version, wire[:end])


@settings(max_examples=400, database=None)
@given(st.sampled_from(EVERY_VERSION), st.binary(max_size=80))
def test_arbitrary_bytes_are_read_or_refused(which: tuple[type[Struct], int], wire: bytes) -> None:
    cls, version = which
    try:
        message, end = decode(cls, version, wire)
    except Malformed:
        return
    assert end <= len(wire)
    encode(message, version)


@settings(max_examples=200, database=None)
@given(st.sampled_from(EVERY_VERSION), st.data())
def test_a_message_with_damaged_bytes_is_read_or_refused(
    which: tuple[type[Struct], int], data: st.DataObject
) -> None:
    cls, version = which
    message, _ = pair_of_structs(cls, kio_class(cls, version), Random(0), version)
    wire = bytearray(encode(message, version))
    for _ in range(min(3, len(wire))):
        place = data.draw(st.integers(0, len(wire) - 1))
        wire[place] = data.draw(st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255))
    try:
        _, end = decode(cls, version, wire)
    except Malformed:
        return
    assert end <= len(wire)
