"""A walk through what may happen to exactly-once queries, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.spark.sink_world import Checkpoint, Driver, Interruption, Plan, SinkWorld
from tests.watched_producer import AFTER_INIT, BEFORE_INIT, POINTS, Killed, Violation, kill

TASKS_MAX = 3
ROWS_MAX = 4


class SinkWalk:
    """One query and its target; a second topic for when it writes elsewhere."""

    def __init__(self, world: SinkWorld, seed: int, *, name: str) -> None:
        self._world = world
        self._seed = seed
        self._chance = random.Random(seed)
        self._topics = [f"{name}-a", f"{name}-b-1"]
        for topic in self._topics:
            world.make_topic(topic, 2)
        self._prefix = self._chance.choice([None, "prefix"])
        self._checkpoint = Checkpoint(f"query-{name}")
        self._topic = self._topics[0]
        self._driver = self._new_driver()
        self.steps: list[str] = []

    STEPS = (
        "next_batches", "restart", "crash", "zombie", "two_drivers", "replay", "checkpoint_goes_back", "replay_with_other_rows",
        "replay_with_fewer_tasks", "copied_checkpoint", "target_changes", "target_is_made_anew", "target_grows", "offsets_expire",
        "marker_topic_is_deleted", "second_write",
    )  # fmt: skip

    def walk(self, steps: Sequence[str] = STEPS, *, rounds: int = 1) -> None:
        """Every step `rounds` times, each round in an order of its own."""
        self._do("next_batches")
        for _ in range(rounds):
            for step in self._chance.sample(steps, len(steps)):
                self._do(step)

    def _do(self, step: str) -> None:
        self.steps.append(step)
        try:
            getattr(self, step)()
            self._world.check()
        except Violation as violation:
            violation.add_note(f"seed {self._seed}, steps: {', '.join(self.steps)}")
            raise

    def _note(self, detail: str) -> None:
        self.steps[-1] += f" ({detail})"

    # The steps.

    def next_batches(self) -> None:
        for _ in range(self._chance.randint(1, 2)):
            self._run_next(self._driver)

    def restart(self) -> None:
        self._driver = self._new_driver()
        self._run_next(self._driver)

    def crash(self) -> None:
        """Once or twice in the same batch; meanwhile something may happen to the cluster."""
        for _ in range(self._chance.randint(1, 2)):
            point = self._chance.choice(POINTS)
            self._note(point)
            self._crash(self._driver, point)
            self._driver = self._new_driver()
            if self._chance.random() < 0.5:
                meanwhile = self._chance.choice(["target_is_made_anew", "target_grows", "offsets_expire"])
                self._note(meanwhile)
                getattr(self, meanwhile)()
        self._run_next(self._driver)

    def zombie(self) -> None:
        """A driver is held up in a task. Another takes its place, and does as much as it can; then the first goes on."""
        point = self._chance.choice(POINTS)
        then = self._chance.choice(["only takes over", "finishes the batch", "finishes also the next"])
        self._note(f"{point}, the other {then}")
        other = self._new_driver()

        def meanwhile() -> None:
            if then == "only takes over":
                self._crash(other, AFTER_INIT)
                return
            self._run_next(other)
            if then == "finishes also the next":
                self._run_next(other)

        if point in (BEFORE_INIT, AFTER_INIT):
            self._driver = self._new_driver()  # one that has a session would not come by there
        older, batch_id = self._driver, self._checkpoint.committed + 1
        plan = self._plan(batch_id)
        interruption = Interruption(self._chance.randrange(len(plan)), point, meanwhile)
        self._run(older, batch_id, plan, interruption)
        self._driver = self._chance.choice([other, older]) if then != "only takes over" else older
        self._run_next(self._driver)

    def two_drivers(self) -> None:
        """Of one name at the same time: each batch is run by both."""
        drivers = [self._driver, self._new_driver()]
        for _ in range(2):
            batch_id = self._checkpoint.committed + 1
            plan = self._plan(batch_id)
            for driver in self._chance.sample(drivers, 2):
                self._run(driver, batch_id, plan)
        self._driver = self._chance.choice(drivers)

    def replay(self) -> None:
        """Spark did not come to note its last batch."""
        if self._chance.random() < 0.7:
            self._driver = self._new_driver()
        last = self._checkpoint.committed
        self._run(self._driver, last, self._checkpoint.plans[last])

    def checkpoint_goes_back(self) -> None:
        self._more_batches(2)
        back = self._chance.randint(1, self._checkpoint.committed)
        self._note(f"by {back + 1}")
        batch_id = self._checkpoint.committed - back
        self._run(self._new_driver(), batch_id, self._checkpoint.plans[batch_id])

    def replay_with_other_rows(self) -> None:
        last = self._checkpoint.committed
        plan = [list(rows) for rows in self._checkpoint.plans[last]]
        plan[self._chance.randrange(len(plan))] += self._world.made_rows(1)
        self._run(self._new_driver(), last, plan)

    def replay_with_fewer_tasks(self) -> None:
        batch_id = self._checkpoint.committed + 1
        self._checkpoint.plans[batch_id] = plan = [self._world.made_rows(1) for _ in range(2)]
        self._run(self._driver, batch_id, plan)
        self._run(self._new_driver(), batch_id, plan[:1])

    def copied_checkpoint(self) -> None:
        """It writes to another topic, under the same query id and numbers, rows of its own."""
        copy = self._checkpoint.copy()
        elsewhere = next(topic for topic in self._topics if topic != self._topic)
        self._run_next(self._driver)
        batch_id = copy.committed + 1
        driver = self._world.driver(copy, elsewhere, self._prefix)
        plan = [self._world.made_rows(len(rows)) for rows in self._checkpoint.plans[batch_id]]
        self._world.run_batch(driver, batch_id, plan, order=self._order(plan))

    def target_changes(self) -> None:
        self._topic = next(topic for topic in self._topics if topic != self._topic)
        # Whatever was written there under these numbers was another query's.
        while any(
            mark.batch_id > self._checkpoint.committed
            for (name, _), mark in self._world.model.marks.items()
            if name.topic == self._topic
        ):
            self._run_next(self._driver)
        self._driver = self._new_driver()
        self._run_next(self._driver)

    def target_is_made_anew(self) -> None:
        self._world.make_anew(self._topic, self._chance.randint(1, 3))

    def target_grows(self) -> None:
        self._world.grow(self._topic)

    def offsets_expire(self) -> None:
        self._world.expire_offsets()

    def marker_topic_is_deleted(self) -> None:
        """What can be told then is where the running queries are: a batch that is replayed now would be written again."""
        self._world.lose_marks()
        self._driver = self._new_driver()
        self._run_next(self._driver)

    def second_write(self) -> None:
        """By the same driver, of the same batch: with a name that both share, in foreachBatch."""
        self._run_next(self._driver)
        if self._prefix is not None:
            last = self._checkpoint.committed
            plan = [self._world.made_rows(len(rows)) for rows in self._checkpoint.plans[last]]
            self._run(self._driver, last, plan)

    # What they are made of.

    def _new_driver(self) -> Driver:
        return self._world.driver(self._checkpoint, self._topic, self._prefix)

    def _run_next(self, driver: Driver) -> None:
        batch_id = self._checkpoint.committed + 1
        self._run(driver, batch_id, self._plan(batch_id))

    def _crash(self, driver: Driver, point: str) -> None:
        batch_id = self._checkpoint.committed + 1
        plan = self._plan(batch_id)
        if driver.worker.sessions and point in (BEFORE_INIT, AFTER_INIT):
            driver = self._new_driver()
        try:
            self._run(driver, batch_id, plan, Interruption(self._chance.randrange(len(plan)), point, kill))
        except Killed:
            driver.worker.sessions.clear()

    def _run(
        self, driver: Driver, batch_id: int, plan: Plan, interruption: Interruption | None = None
    ) -> None:
        self._world.run_batch(driver, batch_id, plan, order=self._order(plan), interruption=interruption)

    def _order(self, plan: Plan) -> list[int]:
        return self._chance.sample(range(len(plan)), len(plan))

    def _plan(self, batch_id: int) -> Plan:
        """Spark notes what a batch is before it runs it."""
        if batch_id not in self._checkpoint.plans:
            self._checkpoint.plans[batch_id] = [
                self._world.made_rows(self._chance.randint(0, ROWS_MAX))
                for _ in range(self._chance.randint(1, TASKS_MAX))
            ]
        return self._checkpoint.plans[batch_id]

    def _more_batches(self, at_least: int) -> None:
        while self._checkpoint.committed < at_least:
            self._run_next(self._driver)
