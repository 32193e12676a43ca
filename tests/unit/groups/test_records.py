"""The bytes of `__consumer_offsets`."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.groups import records
from penstock.groups.records import (
    CommittedOffset,
    GroupKey,
    GroupMetadata,
    MemberMetadata,
    OffsetKey,
    check_offset,
    read_group,
    read_key,
    read_offset,
    write_group,
    write_group_key,
    write_offset,
    write_offset_key,
)
from penstock.model.ids import id_from_text

names = st.text(max_size=12)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
members = st.builds(
    MemberMetadata,
    names,
    st.none() | names,
    names,
    names,
    st.integers(0, 2**31 - 1),
    int32s,
    st.binary(),
    st.binary(),
)
groups = st.builds(
    GroupMetadata,
    names,
    int32s,
    st.none() | names,
    st.none() | names,
    int64s,
    st.lists(members, max_size=3).map(tuple),
)


# The hexadecimal texts below were written by the record classes of Apache Kafka 4.3.1.

MEMBER = MemberMetadata("m1", "i1", "c", "/h", 300_000, 45_000, b"\1\2", b"\3")
TOPIC_ID = id_from_text("j883zrYsTYGeoWZdI1ruog")


def test_keys_have_the_bytes_of_apache_kafka() -> None:
    assert write_offset_key(OffsetKey("g1", "orders", 2)).hex() == "00010002673100066f726465727300000002"
    assert write_group_key("g1").hex() == "000200026731"


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (
            CommittedOffset(3, -1, "", 1794734581201, topic_id=TOPIC_ID),
            "00040000000000000003ffffffff01000001a1de8465d10100108fcf37ceb62c4d819ea1665d235aeea2",
        ),
        (CommittedOffset(3, 5, "mé", 1), "0004000000000000000300000005046dc3a9000000000000000100"),
        (
            CommittedOffset(5, -1, "m", 1, expire_timestamp_ms=2),
            "0001000000000000000500016d00000000000000010000000000000002",
        ),
    ],
)
def test_an_offset_has_the_bytes_of_apache_kafka(value: CommittedOffset, raw: str) -> None:
    assert write_offset(value).hex() == raw
    assert read_offset(bytes.fromhex(raw)) == value


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (
            GroupMetadata("consumer", 2, None, None, 1794734578333, ()),
            "00030008636f6e73756d657200000002ffffffff000001a1de845a9d00000000",
        ),
        (
            GroupMetadata("consumer", 1, "range", "m1", 1, (MEMBER,)),
            "00030008636f6e73756d657200000001000572616e676500026d3100000000000000010000000100026d3100026931"
            "00016300022f68000493e00000afc80000000201020000000103",
        ),
    ],
)
def test_a_group_has_the_bytes_of_apache_kafka(value: GroupMetadata, raw: str) -> None:
    assert write_group(value).hex() == raw
    assert read_group(bytes.fromhex(raw)) == value


@pytest.mark.parametrize(
    ("raw", "state_time_ms", "member"),
    [
        (
            "00000008636f6e73756d657200000001000572616e676500026d310000000100026d3100016300022f680000afc8"
            "0000000201020000000103",
            -1,
            MEMBER._replace(group_instance_id=None, rebalance_timeout_ms=45_000),
        ),
        (
            "00010008636f6e73756d657200000001000572616e676500026d310000000100026d3100016300022f68000493e0"
            "0000afc80000000201020000000103",
            -1,
            MEMBER._replace(group_instance_id=None),
        ),
        (
            "00020008636f6e73756d657200000001000572616e676500026d3100000000000000010000000100026d31000163"
            "00022f68000493e00000afc80000000201020000000103",
            1,
            MEMBER._replace(group_instance_id=None),
        ),
        (
            "000409636f6e73756d6572000000010672616e6765036d31000000000000000102036d310369310263032f680004"
            "93e00000afc803010202030000",
            1,
            MEMBER,
        ),
    ],
)
def test_the_group_versions_that_we_do_not_write_are_read(
    raw: str, state_time_ms: int, member: MemberMetadata
) -> None:
    expected = GroupMetadata("consumer", 1, "range", "m1", state_time_ms, (member,))
    assert read_group(bytes.fromhex(raw)) == expected


@given(names, names, int32s)
def test_an_offset_key_is_read_as_it_was_written(group: str, topic: str, partition: int) -> None:
    key = OffsetKey(group, topic, partition)
    assert read_key(write_offset_key(key)) == key
    assert read_key(b"\0\0" + write_offset_key(key)[2:]) == key
    assert read_key(write_group_key(group)) == GroupKey(group)


@given(int64s, int32s, st.text(max_size=200), int64s, st.binary(min_size=16, max_size=16))
def test_an_offset_is_read_as_it_was_written(
    offset: int, epoch: int, metadata: str, time_ms: int, topic_id: bytes
) -> None:
    value = CommittedOffset(offset, epoch, metadata, time_ms, topic_id=topic_id)
    assert read_offset(write_offset(value)) == value


@given(groups)
def test_a_group_is_read_as_it_was_written(value: GroupMetadata) -> None:
    assert read_group(write_group(value)) == value


@pytest.mark.parametrize(
    ("raw", "offset"),
    [
        ("0000000000000000000900016d0000000000000001", CommittedOffset(9, -1, "m", 1)),
        ("0002000000000000000900016d0000000000000001", CommittedOffset(9, -1, "m", 1)),
        ("000300000000000000090000000400016d0000000000000001", CommittedOffset(9, 4, "m", 1)),
    ],
)
def test_older_offset_versions_are_read(raw: str, offset: CommittedOffset) -> None:
    assert read_offset(bytes.fromhex(raw)) == offset


def test_a_key_of_another_kind_of_group_is_not_ours() -> None:
    assert read_key(bytes.fromhex("000300026732")) is None


@pytest.mark.parametrize(
    "raw", ["", "00", "0005", "0003000a", "ffff", "000000", "0004" + "00" * 12 + "ffffffffffff"]
)
def test_a_record_that_lies_is_a_value_error(raw: str) -> None:
    for read in (read_offset, read_group):
        with pytest.raises(ValueError):
            read(bytes.fromhex(raw))


@given(st.binary(max_size=60))
def test_random_bytes_are_read_or_refused(raw: bytes) -> None:
    for read in (read_key, read_offset, read_group):
        try:
            read(raw)
        except ValueError:
            pass


def refusal_or_result(read: Callable[[bytes], object], raw: bytes) -> object:
    try:
        return read(raw)
    except ValueError:
        return "refused"


damage = st.one_of(
    st.just(lambda raw: raw),
    st.integers(0, 80).map(lambda end: lambda raw: raw[:end]),
    st.tuples(st.integers(0, 80), st.binary(min_size=1, max_size=2)).map(
        lambda change: lambda raw: raw[: change[0]] + change[1] + raw[change[0] + 1 :]
    ),
)


@given(int64s, int32s, st.text(max_size=20), st.sampled_from([bytes(16), b"x" * 16]), damage)
def test_a_quick_look_at_an_offset_is_as_strict_as_reading_it(
    offset: int, epoch: int, metadata: str, topic_id: bytes, hurt: Callable[[bytes], bytes]
) -> None:
    raw = hurt(write_offset(CommittedOffset(offset, epoch, metadata, 1, topic_id=topic_id)))
    slowly = refusal_or_result(records._read_any_offset, raw)
    assert refusal_or_result(read_offset, raw) == slowly
    assert (refusal_or_result(check_offset, raw) == "refused") == (slowly == "refused")


@given(groups, damage)
def test_the_quick_reader_of_groups_reads_what_the_thorough_one_reads(
    value: GroupMetadata, hurt: Callable[[bytes], bytes]
) -> None:
    raw = b"\0\3" + hurt(write_group(value)[2:])
    assert refusal_or_result(read_group, raw) == refusal_or_result(records._read_any_group, raw)
