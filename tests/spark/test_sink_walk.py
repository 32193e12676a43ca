"""Walks through crashes, zombies, replays and accidents of exactly-once queries, held against a model.

The same walks must find mistakes that are planted into the sink.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.spark.writing import exactly_once, markers, sink
from penstock.spark.writing.exactly_once import Replayable, Session
from penstock.spark.writing.markers import NOTHING_WRITTEN, Markers
from penstock.spark.writing.tasks import Marker, Task
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import BROKER_OPTIONS
from tests.spark.sink_walk import SinkWalk
from tests.spark.sink_world import SinkWorld
from tests.watched_producer import Violation

SEEDS = (1, 2)
PLANTED_ROUNDS = 6
PLANTED_PATIENCE_S = 1.0  # a mistake may leave a transaction open for ever

_numbers = itertools.count(1)

Mistake = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    """Of these tests alone: they delete the topic of markers and every group of it."""
    with PenstockBroker(tmp_path_factory.mktemp("broker"), options=BROKER_OPTIONS) as running:
        yield running
        assert "Traceback" not in running.log_path.read_text(), "the broker logged a bug of its own"


@pytest.fixture
def world(own_broker: PenstockBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[SinkWorld]:
    made = SinkWorld(own_broker.bootstrap, monkeypatch)
    yield made
    made.close()


def new_walk(world: SinkWorld, seed: int) -> SinkWalk:
    return SinkWalk(world, seed, name=f"walk-{os.getpid()}-{next(_numbers)}")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_is_there_once_or_an_error_says_what_to_do(world: SinkWorld, seed: int) -> None:
    new_walk(world, seed).walk()


def marker_outside_of_the_transaction(patch: pytest.MonkeyPatch) -> None:
    def send(session: Any, marker: Marker) -> None:
        consumer = session._markers._consumer
        consumer.commit(offsets=[session._markers.as_offset(marker)], asynchronous=False)
        session._producer.send_offsets_to_transaction([], consumer.consumer_group_metadata())

    patch.setattr(Session, "_send_marker", send)


def marker_of_any_target(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sink, "_name", lambda prefix, query_id, topic: query_id)


def marker_of_any_query(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Task, "marker_group", property(lambda task: "penstock-spark-all"))


def marker_only_as_an_offset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Markers, "_read_records", lambda markers: NOTHING_WRITTEN)


def marker_read_before_the_id_is_taken_over(patch: pytest.MonkeyPatch) -> None:
    def open_session(session: Any, task: Task, properties: Any) -> None:
        session._markers = Markers(task, properties)
        session.marker = session._markers.read()
        session._producer = exactly_once.make_producer(exactly_once._producer_settings(task, properties))
        session._producer.init_transactions(30)
        session._hanging = None

    patch.setattr(Session, "__init__", open_session)


def no_fencing(patch: pytest.MonkeyPatch) -> None:
    settings = exactly_once._producer_settings

    def with_an_id_of_its_own(task: Task, properties: Any) -> dict[str, Any]:
        made = settings(task, properties)
        return {**made, "transactional.id": f"{made['transactional.id']}-{next(_numbers)}"}

    patch.setattr(exactly_once, "_producer_settings", with_an_id_of_its_own)


def rows_that_are_not_kept_for_the_next_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replayable, "__iter__", lambda rows: iter(rows._rest))


def no_look_at_the_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exactly_once, "_check_checkpoint", lambda *given: None)


def no_look_at_the_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exactly_once, "_check_replay", lambda task, marker, rows: None)


def no_look_at_the_tasks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sink, "_check_tasks", lambda batch_id, messages: None)


MISTAKES: tuple[tuple[Mistake, tuple[str, ...]], ...] = (
    (marker_outside_of_the_transaction, ("crash",)),
    (marker_of_any_target, ("copied_checkpoint", "next_batches")),
    (marker_of_any_query, ("copied_checkpoint", "next_batches")),
    (marker_only_as_an_offset, ("offsets_expire", "replay")),
    (marker_read_before_the_id_is_taken_over, ("zombie",)),
    (no_fencing, ("zombie", "crash")),
    (rows_that_are_not_kept_for_the_next_attempt, ("zombie",)),
    (no_look_at_the_number, ("checkpoint_goes_back",)),
    (no_look_at_the_rows, ("replay_with_other_rows", "next_batches")),
    (no_look_at_the_tasks, ("replay_with_fewer_tasks",)),
)


@pytest.mark.parametrize(("mistake", "steps"), MISTAKES, ids=lambda given: getattr(given, "__name__", ""))
def test_a_walk_finds_a_planted(
    mistake: Mistake, steps: tuple[str, ...], world: SinkWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    world.patience_s = PLANTED_PATIENCE_S
    for name in ("OPERATION_TIMEOUT_S", "PATIENCE_S"):
        monkeypatch.setattr(markers, name, PLANTED_PATIENCE_S)
    with pytest.raises(Violation):
        new_walk(world, SEEDS[0]).walk(steps, rounds=PLANTED_ROUNDS)
