"""Valid requests of any API and version, filled by chance: well formed, but not always sensible."""

import random
from typing import Any

from penstock.records.build import build_batch
from penstock.wire.schema import Field, Struct, Versions

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED_BITS = {"uint16": 16, "uint32": 32}
NAMES = (
    *(
        "known",
        "known",
        "known",
        "unknown",
        "",
        "a/b",
        "..",
        "x" * 250,
        "naïve",
        "__consumer_offsets",
        "0",
        "1",
        "-1",
    ),
    *("retention.ms", "cleanup.policy", "compact", "consumer", "range", "x" * 32_767),
)


def make(cls: type[Struct], version: int, chance: random.Random, *, depth: int = 0) -> Any:
    message = cls()
    for field in cls.FIELDS:
        if _has(field[2], version):
            setattr(message, field[0], _value(field, version, chance, depth))
    return message


def _has(versions: Versions | None, version: int) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]


def _value(field: Field, version: int, chance: random.Random, depth: int) -> Any:
    _, kind, _, nullable, _, _, nested = field
    if _has(nullable, version) and chance.random() < 0.15:
        return None
    if kind.startswith("[]"):
        count = chance.choice((0, 1, 1, 2, 3)) if depth < 3 else 1
        return [_one(kind[2:], nested, version, chance, depth + 1) for _ in range(count)]
    return _one(kind, nested, version, chance, depth)


def _one(kind: str, nested: type[Struct] | None, version: int, chance: random.Random, depth: int) -> Any:
    if nested is not None:
        return make(nested, version, chance, depth=depth)
    if kind in BITS:
        return _integer(-(1 << BITS[kind] - 1), (1 << BITS[kind] - 1) - 1, chance)
    if kind in UNSIGNED_BITS:
        return _integer(0, (1 << UNSIGNED_BITS[kind]) - 1, chance)
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "float64":
        return chance.choice((0.0, -1.0, float("inf"), 1e300))
    if kind == "uuid":
        return chance.choice((bytes(16), bytes(range(16))))
    if kind in ("string", "legacy_string"):
        return chance.choice(NAMES)
    if kind == "records":
        return bytes(build_batch([(b"key", b"value", (), 1_700_000_000_000)]))
    assert kind == "bytes", kind
    return chance.randbytes(chance.choice((0, 1, 4, 100)))


def _integer(lowest: int, highest: int, chance: random.Random) -> int:
    usual = (0, 0, 1, 1, 2, -1, -2, 3, 100, lowest, highest, chance.randint(lowest, highest))
    return max(lowest, min(highest, chance.choice(usual)))


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One to three small damages: bytes flipped, inserted, removed, or turned into a huge or negative number."""
    damaged = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(6):
            case 0 if at < len(damaged):
                damaged[at] ^= 1 << chance.randrange(8)
            case 1:
                damaged[at:at] = chance.randbytes(chance.randint(1, 8))
            case 2:
                del damaged[at : at + chance.randint(1, 8)]
            case 3:
                damaged[at : at + 4] = b"\x7f\xff\xff\xff"
            case 4:
                damaged[at : at + 4] = b"\xff\xff\xff\xfe"
            case _:
                damaged[at : at + 1] = b"\xff\xff\xff\xff\x0f"
    return bytes(damaged)
