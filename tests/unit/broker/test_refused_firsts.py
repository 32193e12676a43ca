"""What comes behind a batch that was refused for the moment, when the partition does not know its producer."""

import pytest

from penstock.broker.partitions import refused_firsts
from penstock.broker.partitions.refused_firsts import FORGOTTEN_AFTER_S, RefusedFirsts
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.build import build_batch

BUSY = ErrorCode.NOT_ENOUGH_REPLICAS


class ManualClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def now_ms(self) -> int:
        return int(self.now_s * 1000)

    def monotonic(self) -> float:
        return self.now_s

    def since_boot(self) -> float:
        return self.now_s


def batch(sequence: int, *, producer_id: int = 7, epoch: int = 0) -> memoryview:
    records = [(None, b"value", (), 0)]
    return memoryview(
        build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    )


def is_refused(firsts: RefusedFirsts, records: memoryview, *, is_known: bool = False) -> bool:
    try:
        firsts.check("orders", 0, records, is_known=is_known)
    except ApiError as error:
        return error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return False


def test_a_later_batch_is_refused_until_the_first_came_again() -> None:
    firsts = RefusedFirsts(ManualClock())
    firsts.note("orders", 0, batch(0), BUSY)
    assert is_refused(firsts, batch(5))
    assert is_refused(firsts, batch(10))
    assert not is_refused(firsts, batch(0))
    assert not is_refused(firsts, batch(5))


def test_the_lowest_sequence_counts() -> None:
    firsts = RefusedFirsts(ManualClock())
    for sequence in (5, 0, 10):
        firsts.note("orders", 0, batch(sequence), BUSY)
    assert is_refused(firsts, batch(5))
    assert not is_refused(firsts, batch(0))


def test_other_producers_epochs_and_partitions_do_not_wait() -> None:
    firsts = RefusedFirsts(ManualClock())
    firsts.note("orders", 0, batch(0), BUSY)
    assert not is_refused(firsts, batch(5, producer_id=8))
    assert not is_refused(firsts, batch(5, epoch=1))
    firsts.check("orders", 1, batch(5), is_known=False)


def test_a_producer_that_the_partition_knows_is_not_held_up() -> None:
    firsts = RefusedFirsts(ManualClock())
    firsts.note("orders", 0, batch(0), BUSY)
    assert not is_refused(firsts, batch(5), is_known=True)
    assert not firsts


@pytest.mark.parametrize("code", [ErrorCode.INVALID_RECORD, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
def test_what_is_refused_for_good_does_not_hold_up_the_next(code: ErrorCode) -> None:
    firsts = RefusedFirsts(ManualClock())
    firsts.note("orders", 0, batch(0), code)
    assert not is_refused(firsts, batch(5))


def test_batches_without_a_producer_and_garbage_are_not_remembered() -> None:
    firsts = RefusedFirsts(ManualClock())
    for records in (
        None,
        memoryview(b""),
        memoryview(b"garbage"),
        memoryview(build_batch([(None, b"", (), 0)])),
    ):
        firsts.note("orders", 0, records, BUSY)
    assert not firsts


def test_a_client_that_never_came_back_is_forgotten() -> None:
    clock = ManualClock()
    firsts = RefusedFirsts(clock)
    firsts.note("orders", 0, batch(0), BUSY)
    clock.now_s += FORGOTTEN_AFTER_S + 1
    assert not is_refused(firsts, batch(5))


def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_firsts, "MOST_REMEMBERED", 2)
    firsts = RefusedFirsts(ManualClock())
    for producer_id in (1, 2, 3):
        firsts.note("orders", 0, batch(0, producer_id=producer_id), BUSY)
    assert not is_refused(firsts, batch(5, producer_id=1))
    assert is_refused(firsts, batch(5, producer_id=2))
