"""What follows from what happens to a replica: how far it is committed and stable, who is told, when it must flush."""

from types import SimpleNamespace

import pytest

from penstock.metadata.image import NO_LEADER, PartitionRegistration
from penstock.model.errors import ApiError, ErrorCode
from penstock.replication.replica import Awaited, Progress, Replica


class FakeLog:
    def __init__(self, end_offset: int = 0) -> None:
        self.start_offset = 0
        self.end_offset = end_offset
        self.recovery_point = 0
        self.producers = SimpleNamespace(first_undecided_offset=None)
        self.options = SimpleNamespace(flush_messages=2**63 - 1)


def placed(*, epoch: int, leader: int = 1, isr: tuple[int, ...] = (1, 2)) -> PartitionRegistration:
    return PartitionRegistration((1, 2), isr, leader=leader, leader_epoch=epoch, partition_epoch=epoch)


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


@pytest.fixture
def leader(log: FakeLog) -> Replica:
    """Broker 1 leads, 2 follows and is in sync."""
    replica = Replica(log, leader_epoch=-1, high_watermark=0)
    replica.lead(placed(epoch=1), 1, now_ms=0)
    return replica


def append(replica: Replica, log: FakeLog, count: int = 1) -> Progress:
    log.end_offset += count
    return replica.appended()


def fetch(replica: Replica, offset: int) -> Progress:
    progress, _ = replica.follower_fetched(2, offset, start_offset=0, broker_epoch=1, now_ms=0)
    return progress


def test_alone_an_append_is_committed_at_once(log: FakeLog) -> None:
    alone = Replica(log, leader_epoch=0)
    assert append(alone, log, 3) == Progress(0, 3)
    assert alone.is_committed


def test_with_a_follower_it_is_committed_when_the_follower_fetches_past_it(
    leader: Replica, log: FakeLog
) -> None:
    assert append(leader, log, 3) == Progress(0, 0, [])
    assert fetch(leader, 2) == Progress(0, 2, [])
    assert fetch(leader, 2) == Progress(2, 2)
    assert fetch(leader, 3) == Progress(2, 3, [])


def test_who_waits_for_a_commit_is_told_in_the_order_of_offsets(leader: Replica, log: FakeLog) -> None:
    waiting = [Awaited(offset) for offset in (1, 2, 3)]
    append(leader, log, 3)
    assert [leader.await_commit(each) for each in waiting] == [None, None, None]
    assert fetch(leader, 2).told == [(waiting[0], ErrorCode.NONE), (waiting[1], ErrorCode.NONE)]
    assert fetch(leader, 3).told == [(waiting[2], ErrorCode.NONE)]
    assert leader.await_commit(Awaited(3)) is ErrorCode.NONE


def test_a_commit_by_too_few_is_told_as_such(leader: Replica, log: FakeLog) -> None:
    leader.min_insync_replicas = 2
    append(leader, log)
    awaited = Awaited(1)
    leader.await_commit(awaited)
    told = leader.settle_isr(frozenset({1}), 2).told
    assert told == [(awaited, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)]
    assert leader.has_too_few_in_sync


def test_a_role_that_ends_tells_all_who_wait(leader: Replica, log: FakeLog) -> None:
    append(leader, log)
    commit, deletion = Awaited(1), Awaited(1)
    leader.await_commit(commit)
    leader.await_deletion(deletion)
    progress = leader.follow(placed(epoch=2, leader=2))
    assert progress.is_new_role
    assert progress.told == [
        (commit, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (deletion, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ]
    assert leader.await_commit(Awaited(1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_without_a_leader_an_epoch_is_not_ended_twice(leader: Replica) -> None:
    assert leader.have_no_leader().is_new_role
    assert leader.leader_id == NO_LEADER
    assert not leader.have_no_leader().is_new_role


def test_a_proposed_member_holds_the_high_watermark_until_it_is_withdrawn(
    leader: Replica, log: FakeLog
) -> None:
    leader.settle_isr(frozenset({1}), 2)
    assert leader.leadership is not None
    leader.leadership.proposed = frozenset({1, 2})
    append(leader, log)
    assert leader.high_watermark == 0
    assert leader.withdraw_isr() == Progress(0, 1, [])


def test_a_marker_makes_nothing_stable_before_it_is_committed(leader: Replica, log: FakeLog) -> None:
    log.producers.first_undecided_offset = 0
    append(leader, log, 2)
    fetch(leader, 2)
    assert (leader.high_watermark, leader.last_stable_offset) == (2, 0)
    log.end_offset, log.producers.first_undecided_offset = 3, None
    leader.appended(marker=(2, 0))
    assert leader.last_stable_offset == 0
    fetch(leader, 3)
    assert leader.last_stable_offset == 3


def test_a_marker_that_waits_for_a_flush_which_nobody_wants_any_more_decides(log: FakeLog) -> None:
    log.options.flush_messages = 1
    alone = Replica(log, leader_epoch=0)
    log.end_offset = 1
    alone.appended(marker=(0, 0))
    assert alone.last_stable_offset == 0
    log.options.flush_messages = 2**63 - 1
    append(alone, log)
    assert alone.last_stable_offset == 2


def test_a_follower_is_stable_as_far_as_its_leader_says(log: FakeLog) -> None:
    follower = Replica(log, leader_epoch=-1, high_watermark=0)
    follower.follow(placed(epoch=1, leader=2))
    log.end_offset = 5
    assert follower.told_by_leader(high_watermark=4, last_stable_offset=2) == Progress(0, 4)
    assert follower.last_stable_offset == 2
    follower.lead(placed(epoch=2), 1, now_ms=0)
    assert follower.last_stable_offset == 2  # until what it inherited is committed
    fetch(follower, 5)
    assert follower.last_stable_offset == 5


def test_a_log_that_was_cut_takes_the_high_watermark_along(log: FakeLog) -> None:
    follower = Replica(log, leader_epoch=-1, high_watermark=0)
    log.end_offset = 5
    follower.told_by_leader(high_watermark=5, last_stable_offset=5)
    log.end_offset = 3
    follower.truncated()
    assert follower.high_watermark == 3
    log.start_offset = log.end_offset = 9
    follower.truncated()
    assert follower.high_watermark == 9


@pytest.mark.parametrize(("flushed", "must_flush"), [(0, True), (1, True), (2, False), (3, False)])
def test_flush_messages_is_a_duty_of_every_replica(log: FakeLog, flushed: int, must_flush: bool) -> None:
    log.options.flush_messages = 2
    log.end_offset, log.recovery_point = 3, flushed
    assert Replica(log, leader_epoch=-1, high_watermark=0).must_flush is must_flush


def test_what_must_be_flushed_is_committed_with_the_flush(log: FakeLog) -> None:
    log.options.flush_messages = 2
    alone = Replica(log, leader_epoch=0)
    assert append(alone, log) == Progress(0, 1)
    assert append(alone, log) == Progress(1, 1, [])
    awaited = Awaited(2)
    assert alone.await_commit(awaited) is None
    log.recovery_point = 2
    assert alone.flushed() == Progress(1, 2, [(awaited, ErrorCode.NONE)])


def test_a_leader_does_not_count_what_it_must_flush(leader: Replica, log: FakeLog) -> None:
    log.options.flush_messages = 1
    append(leader, log, 3)
    assert fetch(leader, 3) == Progress(0, 0, [])  # the follower has it on its device, the leader has not
    log.recovery_point = 3
    assert leader.flushed() == Progress(0, 3, [])


def test_a_flush_that_fails_is_told_to_who_waits(leader: Replica, log: FakeLog) -> None:
    append(leader, log)
    awaited = Awaited(1)
    leader.await_commit(awaited)
    assert leader.flush_failed().told == [(awaited, ErrorCode.KAFKA_STORAGE_ERROR)]


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_who_knows_another_epoch_is_told_so(leader: Replica, epoch: int, error: ErrorCode) -> None:
    with pytest.raises(ApiError) as refusal:
        leader.check_leader(epoch)
    assert refusal.value.code is error


def test_a_follower_that_is_not_a_replica_is_refused(leader: Replica) -> None:
    with pytest.raises(ApiError):
        leader.follower_fetched(3, 0, start_offset=0, broker_epoch=1, now_ms=0)
