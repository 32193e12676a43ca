"""Which ranges a batch has, from what the options say and what the cluster has."""

from collections.abc import Iterable

import pytest

from penstock.model.ids import TopicPartition
from penstock.spark.failures import BadOption, DataLoss
from penstock.spark.options import read_options
from penstock.spark.reading.offsets import OffsetRange, Offsets
from penstock.spark.reading.planning import batch_ranges, starting_offsets, still_valid, stream_ranges
from penstock.spark.watching.lag import lag

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class FixedCluster:
    """Partitions with a first and an end offset; the record at offset n has the timestamp 10 n."""

    def __init__(self, **logs: tuple[int, int]) -> None:
        self.logs = {TopicPartition(name[0], int(name[1])): log for name, log in logs.items()}

    def earliest(self, places: Iterable[TopicPartition]) -> Offsets:
        return {place: self.logs[place][0] for place in places}

    def latest(self, places: Iterable[TopicPartition]) -> Offsets:
        return {place: self.logs[place][1] for place in places}

    def at(self, timestamps_ms: dict[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        found = {place: max(-(-time // 10), self.logs[place][0]) for place, time in timestamps_ms.items()}
        return {place: offset if offset < self.logs[place][1] else None for place, offset in found.items()}


CLUSTER = FixedCluster(a0=(5, 100), a1=(0, 10))


def planned(**options: str) -> list[OffsetRange]:
    read = read_options({"kafka.bootstrap.servers": "b:1", "subscribe": "a", **options}, streaming=False)
    return batch_ranges(read, CLUSTER, [A0, A1])


def test_a_batch_reads_what_is_there() -> None:
    assert planned() == [OffsetRange("a", 0, 5, 100), OffsetRange("a", 1, 0, 10)]


def test_offsets_may_be_mixed_with_earliest_and_latest() -> None:
    ranges = planned(startingOffsets='{"a":{"0":50,"1":-2}}', endingOffsets='{"a":{"0":60,"1":-1}}')
    assert ranges == [OffsetRange("a", 0, 50, 60), OffsetRange("a", 1, 0, 10)]


def test_timestamps_become_offsets() -> None:
    ranges = planned(startingTimestamp="45", endingOffsetsByTimestamp='{"a":{"0":200,"1":9999}}')
    assert ranges == [OffsetRange("a", 0, 5, 20), OffsetRange("a", 1, 5, 10)]


def test_a_start_after_the_last_record_is_an_error_or_the_end() -> None:
    with pytest.raises(BadOption, match="'startingTimestamp' asks for 500 in a-1"):
        planned(startingTimestamp="500")
    ranges = planned(startingTimestamp="500", startingOffsetsByTimestampStrategy="latest")
    assert ranges == [OffsetRange("a", 0, 50, 100)]


def test_a_partition_that_is_not_mentioned_is_an_error() -> None:
    with pytest.raises(
        BadOption, match="'startingOffsets' must name every partition that is read: a-1 is missing"
    ):
        planned(startingOffsets='{"a":{"0":5}}')


def test_a_partition_that_is_not_read_is_an_error() -> None:
    with pytest.raises(BadOption, match="'startingOffsets' names a-2, which is not read"):
        planned(startingOffsets='{"a":{"0":5,"1":0,"2":0}}')


def test_an_end_that_is_not_there_yet_is_an_error_unless_data_may_be_lost() -> None:
    ends = '{"a":{"0":200,"1":10}}'
    with pytest.raises(BadOption, match="'endingOffsets' asks for 200 in a-0, which ends at 100"):
        planned(endingOffsets=ends)
    assert planned(endingOffsets=ends, failOnDataLoss="false")[0] == OffsetRange("a", 0, 5, 100)


def test_a_stream_starts_where_it_is_told() -> None:
    options = read_options({"kafka.bootstrap.servers": "b:1", "subscribe": "a"}, streaming=True)
    assert starting_offsets(options, CLUSTER, [A0, A1]) == {A0: 100, A1: 10}


def test_a_micro_batch_reads_from_one_end_to_the_next() -> None:
    ranges = stream_ranges({A0: 5, A1: 3}, {A0: 9, A1: 3}, CLUSTER, fail_on_data_loss=True)
    assert ranges == [OffsetRange("a", 0, 5, 9)]


def test_a_new_partition_is_read_from_its_beginning() -> None:
    ranges = stream_ranges({A0: 9}, {A0: 9, A1: 10}, CLUSTER, fail_on_data_loss=True)
    assert ranges == [OffsetRange("a", 1, 0, 10)]


def test_a_new_partition_whose_first_records_are_gone_is_data_loss() -> None:
    with pytest.raises(DataLoss, match="a-0 starts at 5, not at 0"):
        stream_ranges({}, {A0: 9}, CLUSTER, fail_on_data_loss=True)
    assert stream_ranges({}, {A0: 9}, CLUSTER, fail_on_data_loss=False) == [OffsetRange("a", 0, 5, 9)]


def test_a_partition_that_is_gone_is_data_loss() -> None:
    with pytest.raises(DataLoss, match="the partition a-1 is gone"):
        stream_ranges({A0: 5, A1: 3}, {A0: 5}, CLUSTER, fail_on_data_loss=True)
    assert stream_ranges({A0: 5, A1: 3}, {A0: 5}, CLUSTER, fail_on_data_loss=False) == []


def test_a_topic_that_was_made_anew_is_read_from_its_beginning() -> None:
    with pytest.raises(DataLoss, match="the end of a-1 went back from 50 to 10"):
        stream_ranges({A1: 50}, {A1: 10}, CLUSTER, fail_on_data_loss=True)
    assert stream_ranges({A1: 50}, {A1: 10}, CLUSTER, fail_on_data_loss=False) == [OffsetRange("a", 1, 0, 10)]


def test_a_topic_that_lost_its_last_records_goes_on_at_its_new_end() -> None:
    known = {"same_topics": {"a"}}
    with pytest.raises(DataLoss, match="the end of a-1 went back from 50 to 10"):
        stream_ranges({A1: 50}, {A1: 10}, CLUSTER, fail_on_data_loss=True, **known)
    ranges = stream_ranges({A1: 50}, {A1: 10}, CLUSTER, fail_on_data_loss=False, **known)
    assert ranges == [OffsetRange("a", 1, 10, 10)]


@pytest.mark.parametrize("before", [{}, {"a": "same"}])
def test_a_topic_with_the_same_id_or_none_goes_on(before: dict[str, str]) -> None:
    known = {"topic_ids": before, "topic_ids_now": {"a": "same"}}
    assert still_valid({A0: 5}, **known, fail_on_data_loss=True) == {A0: 5}


def test_a_topic_with_another_id_begins_again() -> None:
    known = {"topic_ids": {"a": "old"}, "topic_ids_now": {"a": "new"}}
    with pytest.raises(DataLoss, match="the topic 'a' was deleted and created anew"):
        still_valid({A0: 5}, **known, fail_on_data_loss=True)
    assert still_valid({A0: 5}, **known, fail_on_data_loss=False) == {}


def test_lag_counts_what_is_not_read() -> None:
    assert lag({A0: 40}, {A0: 100, A1: 10}) == {A0: 60, A1: 10}
