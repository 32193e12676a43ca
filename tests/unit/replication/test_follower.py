"""A follower finds where its log parts from its leader's, and cuts there and nowhere before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replication.follower import UNDEFINED, divergence, truncation_offset
from penstock.storage.leader_epochs import LeaderEpochs
from penstock.testing.disk import MemoryDisk

MAX_STEPS = 100


class FakeLog:
    """Records as (epoch, number), no two alike; the epochs are kept by the log's own code."""

    def __init__(self, *lengths: tuple[int, int]) -> None:
        """(epoch, how many records it wrote), in order."""
        self.records: list[tuple[int, object]] = []
        disk = MemoryDisk()
        disk.make_directory("/log")
        self.epochs = LeaderEpochs(disk, "/log/leader-epoch-checkpoint")
        self.high_watermark = 0
        for epoch, length in lengths:
            for number in range(length):
                self.append((epoch, number))

    @property
    def end_offset(self) -> int:
        return len(self.records)

    def append(self, record: tuple[int, object]) -> None:
        self.epochs.assign(record[0], self.end_offset)
        self.records.append(record)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def fetch(self, leader: "FakeLog", max_records: int = 3) -> bool:
        """One fetch: cut, or take some. Whether there was anything to do."""
        parted = divergence(
            leader.epoch_end, last_fetched_epoch=self.epochs.latest, fetch_offset=self.end_offset
        )
        if parted is not None:
            offset = truncation_offset(
                self.epoch_end,
                leader_epoch=parted[0],
                leader_end_offset=parted[1],
                high_watermark=self.high_watermark,
                end_offset=self.end_offset,
            )
            assert offset >= shared(self, leader), "cut below what both have"
            del self.records[offset:]
            self.epochs.truncate_from_end(offset)
            return True
        taken = leader.records[self.end_offset : self.end_offset + max_records]
        for record in taken:
            self.append(record)
        return bool(taken)


def shared(one: FakeLog, other: FakeLog) -> int:
    pairs = zip(one.records, other.records, strict=False)
    return next((offset for offset, (mine, theirs) in enumerate(pairs) if mine != theirs),
                min(one.end_offset, other.end_offset))  # fmt: skip


# --- the leader's side


@pytest.mark.parametrize(
    ("last_fetched_epoch", "fetch_offset", "expected"),
    [
        (-1, 0, None),  # it has nothing yet, or does not know epochs
        (0, 50, None),  # inside an epoch of ours
        (0, 100, None),  # all of it
        (2, 150, None),
        (0, 101, (0, 100)),  # it wrote more in epoch 0 than we have
        (1, 120, (0, 100)),  # an epoch that we do not have
        (2, 151, (2, 150)),
    ],
)
def test_a_follower_is_told_where_the_logs_part(
    last_fetched_epoch: int, fetch_offset: int, expected: tuple[int, int] | None
) -> None:
    leader = FakeLog((0, 100), (2, 50))
    assert (
        divergence(leader.epoch_end, last_fetched_epoch=last_fetched_epoch, fetch_offset=fetch_offset)
        == expected
    )


def test_a_leader_that_knows_no_epochs_cannot_say_where() -> None:
    assert divergence(FakeLog().epoch_end, last_fetched_epoch=3, fetch_offset=5) == (UNDEFINED, UNDEFINED)


# --- the follower's side


def cut(follower: FakeLog, leader_epoch: int, leader_end_offset: int) -> int:
    return truncation_offset(
        follower.epoch_end,
        leader_epoch=leader_epoch,
        leader_end_offset=leader_end_offset,
        high_watermark=follower.high_watermark,
        end_offset=follower.end_offset,
    )


def test_the_example_of_the_module() -> None:
    follower = FakeLog((0, 100), (1, 50))
    assert cut(follower, 0, 120) == 100


def test_what_the_leader_did_not_get_of_an_epoch_is_cut() -> None:
    assert cut(FakeLog((0, 100), (1, 50)), 1, 120) == 120


def test_an_epoch_that_the_follower_lacks_is_replaced_by_the_one_before() -> None:
    assert cut(FakeLog((0, 100), (3, 50)), 2, 130) == 100


def test_nothing_is_cut_behind_the_own_end() -> None:
    assert cut(FakeLog((0, 10)), 0, 120) == 10


def test_without_any_answer_the_high_watermark_is_all_that_is_sure() -> None:
    follower = FakeLog((0, 100))
    follower.high_watermark = 60
    assert cut(follower, UNDEFINED, UNDEFINED) == 60


def test_a_plain_end_of_the_leader_is_taken_where_no_epoch_is_said() -> None:
    assert cut(FakeLog((0, 100)), UNDEFINED, 40) == 40


def test_a_follower_that_knows_no_epochs_cuts_at_the_leaders_end() -> None:
    follower = FakeLog()
    follower.records = [(0, number) for number in range(100)]
    assert cut(follower, 0, 30) == 30


# --- both

# Who leads next (or nobody new), how many records the leader then writes, how many fetches the other makes.
Term = tuple[int, int, int]
TERMS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 4)), max_size=12)


@given(st.integers(2, 3), TERMS)
def test_logs_become_one_whatever_came_before_and_nothing_shared_is_lost(
    replicas: int, terms: list[Term]
) -> None:
    """Any replica may lead next, also one that lacks much, as after unclean elections."""
    logs = [FakeLog() for _ in range(replicas)]
    leader = logs[0]
    for epoch, (leads, written, fetches) in enumerate([*terms, (1, 1, 0)]):
        leader = logs[leads % replicas]
        leader.epochs.assign(epoch, leader.end_offset)
        for number in range(written):
            leader.append((epoch, number))
        followers = [log for log in logs if log is not leader]
        for turn in range(fetches):
            followers[turn % len(followers)].fetch(leader)
    for follower in logs:
        if follower is not leader:
            steps = 0
            while follower.fetch(leader):
                steps += 1
                assert steps < MAX_STEPS, "they never agree"
            assert follower.records == leader.records
