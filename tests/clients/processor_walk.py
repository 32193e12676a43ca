"""A walk through what may happen to exactly-once processors, drawn from a seed; after each step every output is there once."""

from __future__ import annotations

import random
from collections.abc import Sequence

from penstock.consumer import Fenced, Processor
from penstock.consumer.writing import Aborted
from tests.clients.processor_world import (
    SOURCE_PARTITIONS,
    Interruption,
    ProcessorWorld,
    Running,
    give_way,
    wait_for_member,
)
from tests.watched_producer import (
    AFTER_BEGIN,
    AFTER_COMMIT,
    AFTER_INIT,
    AFTER_OFFSETS,
    AFTER_ROWS,
    POINTS,
    Killed,
    Violation,
    kill,
)

RECORDS = (2, 6)  # of a partition, in each step
IN_A_TRANSACTION = (AFTER_BEGIN, AFTER_ROWS, AFTER_OFFSETS)


class ProcessorWalk:
    def __init__(self, world: ProcessorWorld, seed: int) -> None:
        self._world = world
        self._seed = seed
        self._chance = random.Random(seed)
        self.steps: list[str] = []

    STEPS = (
        "work", "crash", "crash_after_crash", "put_out_in_a_transaction", "put_out_with_offsets_pending",
        "two_of_one_name", "share_while_settling", "target_grows",
    )  # fmt: skip

    def walk(self, steps: Sequence[str] = STEPS) -> None:
        """Every step once, in an order of its own."""
        for step in self._chance.sample(steps, len(steps)):
            self.steps.append(step)
            try:
                for partition in range(SOURCE_PARTITIONS):
                    self._world.append(partition, self._chance.randint(*RECORDS))
                getattr(self, step)()
                self._world.check(all_done=True)
            except Violation as violation:
                violation.add_note(f"seed {self._seed}, steps: {', '.join(self.steps)}")
                raise

    def work(self) -> None:
        self._run("one")

    def crash(self) -> None:
        self._crash(self._chance.choice(POINTS))
        self._run("one")

    def crash_after_crash(self) -> None:
        self._crash(AFTER_ROWS)
        self._crash(self._chance.choice(POINTS))
        self._run("one")

    def put_out_in_a_transaction(self) -> None:
        """The group gives everything to another, which does it; then the first goes on."""
        first = self._processor("one")

        def happens() -> None:
            self._world.put_out(first)
            self._ended_well(self._world.start(self._processor("two")).join())

        point = self._chance.choice([AFTER_BEGIN, AFTER_ROWS, AFTER_COMMIT])
        self._note(point)
        self._ended_well(self._world.run(first, Interruption(point, self._chance.randint(0, 1), happens)))

    def put_out_with_offsets_pending(self) -> None:
        """As before, but the first still has its offsets accepted. Whoever comes next has to wait for their end."""
        first = self._processor("one")
        others: list[Running] = []

        def happens() -> None:
            self._world.put_out(first)
            others.append(self._world.start(self._processor("two")))
            wait_for_member(others[0])
            give_way(others[0])

        self._ended_well(self._world.run(first, Interruption(AFTER_OFFSETS, 0, happens)))
        for other in others:
            self._ended_well(other.join())

    def two_of_one_name(self) -> None:
        """The older one ends and says why; the younger one does the rest."""
        point = self._chance.choice([AFTER_INIT, *IN_A_TRANSACTION])
        self._note(point)
        younger: list[Running] = []

        def happens() -> None:
            younger.append(self._world.started_behind_init(self._processor("one")))

        raised = self._world.run(self._processor("one"), Interruption(point, 0, happens))
        for each in younger:
            self._ended_well(each.join())
        if point == AFTER_INIT and raised is None:
            return  # the younger one had done everything before the older one joined the group
        if not isinstance(raised, Fenced) or "`instance`" not in str(raised):
            raise Violation(f"two processors have one name, and the older one ends with {raised!r}")

    def share_while_settling(self) -> None:
        """Another member takes a partition over between a handler's work and its commit; the batch has records of both."""
        first = self._world.processor("one", batch=True, batch_size=50, batch_wait_s=0.2, stop_at_end=False)
        others: list[Running] = []

        def happens() -> None:
            if not others:
                for partition in range(SOURCE_PARTITIONS):
                    self._world.append(
                        partition, 1
                    )  # to commit that would pass over what is to be handled again
                others.append(self._world.start(self._world.processor("two", batch=True)))
            if len(first._membership._terms) == SOURCE_PARTITIONS:
                assert first._transactional is not None
                first._transactional._producer.abort_transaction(30)
                raise Aborted("until the other one has its share")
            for partition in range(SOURCE_PARTITIONS):
                self._world.append(
                    partition, 1
                )  # a commit of which would pass over what is to be handled again

        running = self._world.start(first, Interruption(AFTER_ROWS, 0, happens, lasts=True))
        self._world.wait_until_done(running)
        first.stop()
        self._ended_well(running.join())
        for other in others:
            self._ended_well(other.join())

    def target_grows(self) -> None:
        point = self._chance.choice(IN_A_TRANSACTION)
        self._note(point)
        self._ended_well(
            self._world.run(self._processor("one"), Interruption(point, 0, self._world.grow_target))
        )

    def _processor(self, instance: str) -> Processor:
        return self._world.processor(instance, batch=self._chance.random() < 0.5)

    def _run(self, instance: str) -> None:
        self._ended_well(self._world.run(self._processor(instance)))

    def _crash(self, point: str) -> None:
        self._note(point)
        raised = self._world.run(
            self._processor("one"), Interruption(point, self._chance.randint(0, 1), kill)
        )
        if raised is not None and not isinstance(raised, Killed):
            raise Violation(f"it was to be killed, and ended with {raised!r}") from raised

    def _ended_well(self, raised: BaseException | None) -> None:
        if raised is not None:
            raise Violation(f"a processor ended with {raised!r}") from raised

    def _note(self, detail: str) -> None:
        self.steps[-1] += f" ({detail})"
