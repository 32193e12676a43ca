"""Records of consumer groups, byte for byte as Apache Kafka 4.3.1's own classes write them."""

import pytest

from penstock.groups.consumer import records
from penstock.groups.consumer.groups import ConsumerGroups
from penstock.groups.consumer.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    CurrentPartitions,
    CurrentValue,
    GroupValue,
    MemberValue,
    RegexValue,
    TargetEpochValue,
    TargetPartitions,
    TargetValue,
    Value,
    read_key,
    read_value,
    write_key,
    write_value,
)
from penstock.groups.consumer.topic_hash import metadata_hash
from tests.unit.groups.harness import FakeTopics

A, B = b"a" * 16, b"b" * 16

VALUES: list[tuple[int, Value, str]] = [
    (3, GroupValue(epoch=7, metadata_hash=-5), "00000000000701" + "0008" + "fffffffffffffffb"),
    (3, GroupValue(epoch=1), "00000000000100"),
    (
        5,
        MemberValue(
            client_id="c",
            client_host="/1",
            subscribed_topic_names=["a", "b"],
            subscribed_topic_regex="",
            rebalance_timeout_ms=5,
        ),
        "0000" + "00" + "00" + "0263" + "032f31" + "0302610262" + "01" + "00000005" + "00" + "01000100",
    ),
    (
        5,
        MemberValue(
            instance_id="i",
            rack_id="r",
            client_id="c",
            client_host="/1",
            subscribed_topic_names=["a"],
            subscribed_topic_regex="x",
            rebalance_timeout_ms=5,
            server_assignor="range",
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=9, supported_protocols=[ClassicProtocol(name="r", metadata=b"abc")]
            ),
        ),
        "0000" + "0269" + "0272" + "0263" + "032f31" + "020261" + "0278" + "00000005" + "0672616e6765"
        "01000e" + "01" + "00000009" + "02" + "0272" + "0461626300" + "00",
    ),
    (6, TargetEpochValue(assignment_epoch=3, assignment_timestamp=55), "0000000000030100080000000000000037"),
    (
        7,
        TargetValue(topic_partitions=[TargetPartitions(topic_id=A, partitions=[1, 2])]),
        "000002" + A.hex() + "0300000001000000020000",
    ),
    (
        8,
        CurrentValue(
            member_epoch=3,
            previous_member_epoch=2,
            state=1,
            assigned_partitions=[
                CurrentPartitions(topic_id=A, partitions=[1, 2], assignment_epochs=[3, 2])
            ],
            partitions_pending_revocation=[
                CurrentPartitions(topic_id=B, partitions=[0], assignment_epochs=[1])
            ],
        ),
        "0000" + "00000003" + "00000002" + "01"
        "02" + A.hex() + "030000000100000002" + "010009" + "030000000300000002"
        "02" + B.hex() + "0200000000" + "010005" + "0200000001" + "00",
    ),
    (16, RegexValue(topics=["a"], version=4, timestamp=5), "0000020261" + "0000000000000004" + "000000000000000500"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "raw"), VALUES)
def test_a_value_is_written_as_kafka_writes_it_and_read_back(kind: int, value: Value, raw: str) -> None:
    assert write_value(value).hex() == raw
    assert read_value(kind, bytes.fromhex(raw)) == value


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        ((3, "g", ""), "0003000167"),
        ((4, "g", ""), "0004000167"),
        ((5, "g", "m1"), "000500016700026d31"),
        ((6, "g", ""), "0006000167"),
        ((7, "g", "m1"), "000700016700026d31"),
        ((8, "g", "m1"), "000800016700026d31"),
        ((16, "g", "o.*"), "001000016700036f2e2a"),
    ],
)
def test_a_key_is_its_type_and_its_names(key: tuple[int, str, str], raw: str) -> None:
    assert write_key(*key).hex() == raw
    assert read_key(bytes.fromhex(raw)) == key


@pytest.mark.parametrize("raw", ["0003", "00030005", "000500016700", "0005000167000561", "0009000167"])
def test_a_key_that_is_cut_off_or_of_others_is_refused(raw: str) -> None:
    with pytest.raises(ValueError):
        read_key(bytes.fromhex(raw))


@pytest.mark.parametrize("raw", ["", "00", "0001", "0000", "00000000", "000000000001ff"])
def test_a_value_that_makes_no_sense_is_refused(raw: str) -> None:
    with pytest.raises(ValueError):
        read_value(records.GROUP, bytes.fromhex(raw))


def test_partitions_without_epochs_have_that_of_the_member() -> None:
    """As brokers before 4.3 wrote them."""
    old = bytes.fromhex("0000" + "00000003" + "00000002" + "00" + "02" + A.hex() + "020000000100" + "0100")
    groups = ConsumerGroups(topics=FakeTopics(), classic_groups={})
    groups.replay(write_key(records.CURRENT, "g", "m1"), old)
    group = groups.get("g")
    assert group is not None
    assert group.members["m1"].assigned == {A: {1: 3}}


def test_a_state_that_is_not_known_is_kept_as_such() -> None:
    odd = bytes.fromhex("0000" + "00000003" + "00000002" + "09" + "01" + "01" + "00")
    groups = ConsumerGroups(topics=FakeTopics(), classic_groups={})
    groups.replay(write_key(records.CURRENT, "g", "m1"), odd)
    group = groups.get("g")
    assert group is not None
    assert group.members["m1"].state.name == "UNKNOWN"


def test_tombstones_of_what_is_not_there_do_nothing() -> None:
    groups = ConsumerGroups(topics=FakeTopics(), classic_groups={})
    for kind in sorted(records.KEY_TYPES):
        groups.replay(write_key(kind, "g", "m1"), None)
    assert groups.all() == []
    groups.replay(write_key(records.PARTITION_METADATA, "g"), b"\0\0\1\0")
    for kind in (records.CURRENT, records.TARGET, records.MEMBER, records.REGEX):
        groups.replay(write_key(kind, "g", "m1"), None)
    assert [group.has_partition_metadata for group in groups.all()] == [True]


class TopicsOfKnownHash(FakeTopics):
    def topic_id(self, name: str) -> bytes | None:
        return bytes.fromhex("01020304050607081112131415161718") if name in self.partitions else None


def test_the_hash_of_topics_is_that_of_kafka() -> None:
    """From hash4j's XXH3 over what Apache Kafka 4.3.1 feeds it for `orders` with 3 partitions."""
    assert metadata_hash(["orders", "not-there"], TopicsOfKnownHash(orders=3)) == HASH_OF_ORDERS
    assert metadata_hash([], TopicsOfKnownHash(orders=3)) == 0
    assert metadata_hash(["not-there"], TopicsOfKnownHash(orders=3)) == 0


HASH_OF_ORDERS = 8632239608810869865
