"""What a processor settles when partitions are taken away while a transaction fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from penstock.consumer import Processor, Record
from penstock.consumer.handling import Unit
from penstock.consumer.topics import ignored_topics
from penstock.consumer.writing import Aborted
from tests.unit.consumer.made_records import record


class Members:
    """A membership that loses the partitions of a topic when it is told to."""

    def __init__(self) -> None:
        self.lost: set[tuple[str, int]] = set()

    def owns(self, one: Record) -> bool:
        return one.place not in self.lost

    def group_metadata(self) -> object:
        return self

    def breathe(self, wait_s: float = 0.0) -> None:
        pass


class Writer:
    """Aborts once, and a partition goes meanwhile."""

    def __init__(self, members: Members, lost: tuple[str, int]) -> None:
        self._members = members
        self._lost = lost
        self.committed: list[Mapping[tuple[str, int], int]] = []

    def write(self, units: Sequence[Unit], offsets: Mapping[tuple[str, int], int], metadata: Any) -> None:
        if not self._members.lost:
            self._members.lost = {self._lost}
            raise Aborted("the group is rebalancing")
        self.committed.append(offsets)


def made(partition: int, offset: int) -> Record:
    one = record(offset=offset)
    one.partition = partition
    return one


def processor() -> Any:
    return Processor("orders", group="billing", handler=print, guarantee="exactly-once", batch=True)


def test_no_offset_is_committed_past_a_record_that_is_handled_again() -> None:
    working = processor()
    members = Members()
    working._membership = members
    writer = Writer(members, lost=("orders", 1))
    first, second, behind = made(0, 0), made(0, 1), made(0, 2)
    working._handled = [
        Unit([behind], [], is_dead_letter=True),
        Unit([first, second, made(1, 0)], []),
        Unit([made(2, 7)], []),
    ]
    working._settle_in_transaction(writer, once=False)
    assert writer.committed == [{("orders", 2): 8}]
    assert list(working._todo) == [first, second, behind]


class NotYetTold(Members):
    """Learns of its loss at the second poll, and until then does not know in which generation it is."""

    def __init__(self, lost: tuple[str, int]) -> None:
        super().__init__()
        self._on_its_way = lost
        self.polls = 0

    def group_metadata(self) -> object:
        return self if self.lost else None

    def breathe(self, wait_s: float = 0.0) -> None:
        self.polls += 1
        if self.polls == 2:
            self.lost = {self._on_its_way}


def test_nothing_is_written_before_we_are_told_what_was_lost() -> None:
    working = processor()
    members = working._membership = NotYetTold(("orders", 1))
    writer = Writer(members, lost=("orders", 1))
    working._handled = [Unit([made(1, 0)], []), Unit([made(2, 7)], [])]
    working._settle_in_transaction(writer, once=False)
    assert writer.committed == [{("orders", 2): 8}]
    assert working._counts.aborts == 0, "nothing was begun"


def test_a_processor_that_stops_waits_for_one_poll_to_tell_what_was_lost() -> None:
    working = processor()
    members = working._membership = NotYetTold(("orders", 1))
    writer = Writer(members, lost=("orders", 1))
    working._handled = [Unit([made(1, 0)], [])]
    working.stop()
    working._settle_in_transaction(writer, once=False)
    assert (writer.committed, members.polls) == ([], 1)


def test_nothing_is_waited_for_while_partitions_are_taken_away() -> None:
    working = processor()
    members = working._membership = NotYetTold(("orders", 1))
    writer = Writer(members, lost=("orders", 1))
    working._handled = [Unit([made(1, 0)], [])]
    working._settle_in_transaction(writer, once=True)
    assert (writer.committed, members.polls) == ([], 0)


def test_what_is_undone_takes_with_it_all_that_is_behind_it_in_its_partitions() -> None:
    working = processor()
    members = Members()
    working._membership = members
    members.lost = {("orders", 1)}
    working._handled = [
        Unit([made(0, 0), made(1, 0)], []),
        Unit([made(0, 1), made(2, 0)], []),
        Unit([made(2, 1)], []),
        Unit([made(3, 0)], []),
    ]
    working._drop_lost()
    assert [unit.records[0].partition for unit in working._handled] == [3]
    assert [(one.partition, one.offset) for one in working._todo] == [(0, 0), (2, 0), (0, 1), (2, 1)]


def test_a_pattern_does_not_match_its_own_dead_letters() -> None:
    assert ignored_topics(["^orders.*"], "{topic}.dlq") == r"^.*\.dlq$"
    assert ignored_topics(["^.*"], "dead") == "^dead$"
    with pytest.raises(ValueError, match=r"'orders\.dlq' is a dead letter topic here"):
        ignored_topics(["^orders.*", "orders.dlq"], "{topic}.dlq")
