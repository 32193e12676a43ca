"""Walks through crashes, zombies and rebalances of exactly-once processors, held against a model.

The same walks must find mistakes that are planted into the processor.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from penstock.consumer import Processor, Record, processor, writing
from penstock.consumer.handling import Unit
from penstock.consumer.membership import Membership
from penstock.consumer.writing import TransactionalWriter
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.processor_walk import ProcessorWalk
from tests.clients.processor_world import ProcessorWorld
from tests.watched_producer import Violation

SEEDS = (1, 2)
PLANTED_PATIENCE_S = 3.0  # a mistake may leave a transaction open for ever

_numbers = itertools.count(1)

Mistake = Callable[[pytest.MonkeyPatch], None]


def new_world(broker: PenstockBroker, monkeypatch: pytest.MonkeyPatch) -> ProcessorWorld:
    return ProcessorWorld(broker, monkeypatch, name=f"walk-{os.getpid()}-{next(_numbers)}")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_done_once_whatever_happens_to_its_processor(
    broker: PenstockBroker, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    ProcessorWalk(new_world(broker, monkeypatch), seed).walk()


def offsets_outside_of_the_transaction(patch: pytest.MonkeyPatch) -> None:
    def send(writer: Any, positions: Sequence[TopicPartition], membership: Membership) -> None:
        membership.uncommitted.update({(each.topic, each.partition): each.offset for each in positions})
        membership.commit()
        writer._producer.send_offsets_to_transaction([], membership.consumer.consumer_group_metadata())

    patch.setattr(Membership, "group_metadata", lambda membership: membership)
    patch.setattr(TransactionalWriter, "_send_offsets", send)


def offsets_that_anybody_may_commit(patch: pytest.MonkeyPatch) -> None:
    join = Membership.__init__
    names: dict[Membership, dict[str, Any]] = {}

    def noted(membership: Membership, settings: Any, *given: Any, **named: Any) -> None:
        names[membership] = {name: settings[name] for name in ("bootstrap.servers", "group.id")}
        join(membership, settings, *given, **named)

    def of_a_stranger(membership: Membership) -> Any:
        stranger = Consumer(names[membership])
        try:
            return stranger.consumer_group_metadata()
        finally:
            stranger.close()

    patch.setattr(Membership, "__init__", noted)
    patch.setattr(Membership, "group_metadata", of_a_stranger)


def no_fencing(patch: pytest.MonkeyPatch) -> None:
    open_writer = TransactionalWriter.__init__

    def with_an_id_of_its_own(writer: Any, settings: Any, transactional_id: str) -> None:
        open_writer(writer, settings, f"{transactional_id}-{next(_numbers)}")

    patch.setattr(TransactionalWriter, "__init__", with_an_id_of_its_own)


def offsets_past_what_is_undone(patch: pytest.MonkeyPatch) -> None:
    def without_lost(
        units: Sequence[Unit], owns: Callable[[Record], bool]
    ) -> tuple[list[Unit], list[Record]]:
        return [unit for unit in units if all(map(owns, unit.records))], []

    patch.setattr(processor, "without_lost", without_lost)


def partitions_that_were_lost_are_settled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(processor, "without_lost", lambda units, owns: (list(units), []))


def offsets_that_are_not_yet_decided(patch: pytest.MonkeyPatch) -> None:
    settings = Processor._member_settings
    patch.setattr(
        Processor,
        "_member_settings",
        lambda working: {**settings(working), "isolation.level": "read_uncommitted"},
    )


def aborted_outputs_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    produce = writing.Deliveries.produce
    seen: set[int] = set()

    def once(deliveries: Any, units: Sequence[Unit]) -> None:
        produce(deliveries, [unit for unit in units if id(unit) not in seen])
        seen.update(map(id, units))

    patch.setattr(writing.Deliveries, "produce", once)


# How partitions are shared is the group's choice, so some take several turns.
MISTAKES: tuple[tuple[Mistake, tuple[str, ...]], ...] = (
    (offsets_outside_of_the_transaction, ("crash_after_crash", "crash")),
    (offsets_that_anybody_may_commit, ("put_out_in_a_transaction",) * 4),
    (offsets_past_what_is_undone, ("share_while_settling",) * 6),
    (offsets_that_are_not_yet_decided, ("put_out_with_offsets_pending",) * 4),
    (partitions_that_were_lost_are_settled, ("share_while_settling", "put_out_in_a_transaction") * 3),
    (aborted_outputs_are_forgotten, ("share_while_settling", "put_out_in_a_transaction") * 3),
    (no_fencing, ("two_of_one_name", "crash_after_crash")),
)


@pytest.mark.parametrize(("mistake", "steps"), MISTAKES, ids=lambda given: getattr(given, "__name__", ""))
def test_a_walk_finds_a_planted(
    mistake: Mistake, steps: tuple[str, ...], broker: PenstockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    world = new_world(broker, monkeypatch)
    world.patience_s = PLANTED_PATIENCE_S
    with pytest.raises(Violation):
        ProcessorWalk(world, SEEDS[0]).walk(steps)
