"""A store in memory gives what was put, in the order of keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.streams.kernel import memory_stores
from penstock.streams.kernel.memory_stores import MemoryStore
from penstock.streams.kernel.partitioner import murmur2, partition_of
from penstock.streams.kernel.state_values import pack, unpack

keys = st.binary(max_size=2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(keys, st.one_of(st.none(), st.integers())), max_size=60), keys, keys)
def test_a_store_is_a_dict_in_the_order_of_its_keys(
    changes: list[tuple[bytes, Any]], first: bytes, last: bytes
) -> None:
    small, memory_stores.BLOCK_KEYS = memory_stores.BLOCK_KEYS, 4  # type: ignore[misc]
    try:
        store, wanted = MemoryStore(), {}
        for at, (key, value) in enumerate(changes):
            store.put(key, value)
            if value is None:
                wanted.pop(key, None)
            else:
                wanted[key] = value
            if at % 3 == 0:
                assert list(store.all()) == sorted(wanted.items())
        assert list(store.range(first, last)) == [
            each for each in sorted(wanted.items()) if first <= each[0] < last
        ]
        assert {key: store.get(key) for key in wanted} == wanted
    finally:
        memory_stores.BLOCK_KEYS = small  # type: ignore[misc]


def test_a_store_may_change_while_it_is_walked() -> None:
    store = MemoryStore()
    for key in (b"a", b"b", b"c"):
        store.put(key, 1)
    for key, _ in store.all():
        store.put(key, None)
    assert list(store.all()) == []


def test_state_comes_back_with_its_types() -> None:
    for value in (
        None,
        True,
        -5,
        2**70,
        1.5,
        "ä",
        b"\x00",
        [1, [2]],
        {"a": 1, "b": None},
        {1: "x"},
        Decimal("1.50"),
    ):
        assert unpack(pack(value)) == value
    assert str(unpack(pack(Decimal("1.50")))) == "1.50"


def test_partitions_are_those_of_kafkas_default_partitioner() -> None:
    # Values of Kafka's own UtilsTest.
    signed = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"abc": 479470107,
    }
    assert {key: murmur2(key) - (1 << 32 if murmur2(key) >> 31 else 0) for key in signed} == signed
    assert partition_of(b"foobar", 7) == (murmur2(b"foobar") & 0x7FFFFFFF) % 7
