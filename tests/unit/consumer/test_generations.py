"""In which generation of its group a member may commit offsets."""

from __future__ import annotations

import struct

from confluent_kafka import Consumer

from penstock.consumer.generations import Generations, generation


def metadata(number: int, member: bytes = b"me") -> bytes:
    return b"CGMDv2:" + struct.pack("=i", number) + b"billing\0" + member + b"\0"


def reached(number: int) -> Generations:
    generations = Generations()
    generations.is_reached(metadata(number), is_revoking=False)
    generations.all_is_told()
    return generations


def test_a_generation_counts_when_nothing_from_before_it_is_on_its_way() -> None:
    generations = reached(1)
    assert generations.is_reached(metadata(1), is_revoking=False)
    assert not generations.is_reached(metadata(2), is_revoking=False)
    assert not generations.is_reached(metadata(2), is_revoking=False), "nobody was told anything since"
    generations.all_is_told()
    assert generations.is_reached(metadata(2), is_revoking=False)
    assert not generations.is_reached(metadata(2, b"another"), is_revoking=False)


def test_the_first_generation_has_to_be_reached_as_well() -> None:
    generations = Generations()
    generations.all_is_told()
    assert not generations.is_reached(metadata(1), is_revoking=True)


def test_a_generation_in_which_we_begin_with_nothing_counts_at_once() -> None:
    generations = Generations()
    generations.begin(metadata(3))
    assert generations.is_reached(metadata(3), is_revoking=False)
    assert not generations.is_reached(metadata(4), is_revoking=False)


def test_what_is_revoked_may_be_committed_in_the_next_generation_and_in_none_behind_it() -> None:
    generations = reached(1)
    assert generations.is_reached(metadata(2), is_revoking=True)
    assert not generations.is_reached(metadata(2), is_revoking=False)
    assert not generations.is_reached(metadata(3), is_revoking=True)


def test_the_generation_is_read_as_the_client_writes_it() -> None:
    consumer = Consumer({"group.id": "billing"})
    try:
        assert generation(consumer.consumer_group_metadata()) == -1
    finally:
        consumer.close()
    assert generation(metadata(7)) == 7
    assert generation(b"CGMDv3:") is None
    assert generation(b"CGMDv2:\1") is None
