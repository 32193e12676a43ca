"""Damage on disk is heard of: in the log, on the metrics page, and by DescribeLogDirs."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.partitions.damage import (
    OTHER_AFTER_MS,
    TELL_AGAIN_AFTER_MS,
    current_damage,
    report_damage,
)
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.records.walk import finish
from penstock.runtime.files import OsDisk
from penstock.storage.damage import OURS
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, others, partition_at
from tests.unit.storage.batches import NOW_MS, StillClock, append

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def held(tmp_path: Path, clock: StillClock) -> Iterator[HeldPartitions]:
    holding = HeldPartitions(OsDisk(), [str(tmp_path)], clock, broker_id=1)
    yield holding
    holding.release()


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


LENGTHS = {"none": 0, "too short": 48, "negative": -1, "past the end": 0x7FFFFFFF, "a little past": 400}


@pytest.fixture(params=LENGTHS.values(), ids=LENGTHS.keys())
def damaged(held: HeldPartitions, request: pytest.FixtureRequest) -> Log:
    """Six records in batches of their own; at the fourth the length is not one."""
    log = held.ensure(bytes(16), ORDERS, LogOptions(), is_new=True).log
    for number in range(6):
        append(log, timestamp=NOW_MS + number)
    set_length(log, 3, request.param)
    return log


def set_length(log: Log, number: int, length: int) -> None:
    size = log.segments[0].size_bytes // 6
    with open(log.segments[0].path(".log"), "r+b") as file:
        file.seek(number * size + 8)
        file.write(length.to_bytes(4, "big", signed=True))


def meet(log: Log, offset: int = 4) -> None:
    with pytest.raises(ApiError) as refused:
        log.read(offset, 1000)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_damage_is_met_at_its_own_offset_and_not_before(damaged: Log) -> None:
    meet(damaged, 3)
    assert damaged.read(2, 1000).base_offset == 2


@pytest.mark.parametrize("max_bytes", [50, 10_000])
def test_damage_is_met_by_who_had_caught_up_before(held: HeldPartitions, max_bytes: int) -> None:
    log = held.ensure(bytes(16), ORDERS, LogOptions(), is_new=True).log
    for _ in range(5):
        append(log)
    log.read(5, max_bytes)
    append(log)
    set_length(log, 5, 0x7FFFFFFF)

    def ask_again_and_again() -> None:
        for _ in range(20):
            log.read(5, max_bytes)

    with pytest.raises(ApiError):
        ask_again_and_again()


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_damage_is_an_error_in_the_log_once_in_a_while(
    damaged: Log, clock: StillClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        meet(damaged)
    (told,) = errors(caplog)
    assert told.startswith("orders-0: the log is damaged at offset 4: no record batch at byte ")
    assert f"{damaged.directory}/{0:020d}.log" in told
    assert "penstock log verify" in told
    clock.ms += TELL_AGAIN_AFTER_MS
    meet(damaged)
    assert len(errors(caplog)) == 2


def test_two_places_that_are_met_in_turn_are_no_flood_of_errors(
    damaged: Log, clock: StillClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        report_damage(damaged, 1, "here")
        report_damage(damaged, 4, "there")
    assert len(errors(caplog)) == 1
    clock.ms += OTHER_AFTER_MS
    report_damage(damaged, 4, "there")
    assert len(errors(caplog)) == 2


def test_damage_is_met_by_a_search_for_a_time_too(damaged: Log, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ApiError):
        finish(damaged.offset_for_timestamp(NOW_MS + 5))
    assert len(errors(caplog)) == 1


def test_damage_is_shown_until_its_records_are_deleted(damaged: Log) -> None:
    assert current_damage(damaged, is_leader=True) is None
    meet(damaged)
    found = current_damage(damaged, is_leader=True)
    assert found is not None
    assert (found.offset, found.broker_id) == (4, OURS)
    damaged.advance_start_offset(5)
    assert current_damage(damaged, is_leader=True) is None


def test_a_follower_of_a_damaged_leader_says_so_once(
    held: HeldPartitions, caplog: pytest.LogCaptureFixture
) -> None:
    log = held.ensure(bytes(16), ORDERS, LogOptions(), is_new=True).log
    for _ in range(5):
        report_damage(log, 0, "it cannot be read there", 2)
    (told,) = errors(caplog)
    assert "cannot follow, as the log of broker 2, its leader, is damaged at offset 0" in told
    append(log)  # it was fetched after all
    assert current_damage(log, is_leader=False) is None


def test_a_follower_of_a_damaged_leader_notices() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        leader = cluster.leader("orders")
        log = partition_at(leader, "orders").log
        append(log)
        file: Any = log.segments.active.open_file()
        file._contents.data[8:12] = bytes(4)  # the length
        followers = [partition_at(machine, "orders").log for machine in others(cluster, leader)]
        await cluster.until(lambda: all(follower.damage for follower in followers))
        await asyncio.sleep(30)  # of virtual time, in which they ask again and again
        assert {follower.damage.broker_id for follower in followers if follower.damage} == {leader.broker_id}

    in_cluster(main)
