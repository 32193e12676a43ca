"""A push query: a thread reads the topics of its plan, runs it record by record, and gives the client each row.

Nothing of it lasts: it begins where `auto.offset.reset` says, has its state in memory, and ends with its client. Records of one
partition keep their order; of several, the oldest goes first, and a partition that has more is waited for, as in a query that
lasts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from penstock.client.clients import Connection, translated
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.sql.analysis.planned import PlannedPush
from penstock.sql.engine.following import PASSING_CODES
from penstock.sql.engine.results import LIMIT_REACHED, Header, ResultRow, Results
from penstock.streams.kernel.driver import Driver
from penstock.streams.kernel.records import InputRecord, Row
from penstock.streams.plan.nodes import Deliver, Plan, Read
from penstock.streams.plan.sources import SourceKind
from penstock.streams.running.reading import Input, Lane

if TYPE_CHECKING:
    from penstock.sql.engine.engine import Engine

log = logging.getLogger("penstock.sql")

POLL_S: Final = 0.2
AT_ONCE: Final = 500
BUFFERED: Final = 1000
"""So many records of a partition wait for those of others."""
RESET: Final = "auto.offset.reset"


class Push:
    def __init__(self, engine: Engine, planned: PlannedPush, properties: Mapping[str, str]) -> None:
        self._engine = engine
        self._planned = planned
        self.results = Results(
            Header(planned.query_id, planned.schema),
            bound=engine.options["ksql.query.push.buffer.rows"],
            stop=self._forget,
        )
        self._left = planned.limit
        world = engine.world(properties)
        self._is_earliest = (world.property(RESET) or "latest") == "earliest"
        plan = delivering(planned, properties)
        reads = [node for node in plan.nodes() if isinstance(node, Read)]
        self._topics = {node.source.topic: world.topic_partitions(node.source.topic) or 1 for node in reads}
        # A table is what all its records say, wherever a stream begins.
        self._tables = {node.source.topic for node in reads if node.source.kind is SourceKind.TABLE}
        self._driver = Driver(
            plan,
            partitions=self._topics,
            registry=engine.schemas,
            deliver=self._deliver,
            on_error=lambda error: log.info("%s: %s", planned.query_id, error),
        )
        places = [(topic, partition) for topic, count in self._topics.items() for partition in range(count)]
        self._lane = Lane(planned.query_id, places)
        self._inputs = {each.place: each for each in self._lane.inputs}
        self._consumer = self._assigned(engine.connection)
        threading.Thread(target=self._run, name=f"penstock {planned.query_id}", daemon=True).start()

    def _forget(self) -> None:
        self._engine.open_pushes.pop(self._planned.query_id, None)

    def _assigned(self, connection: Connection) -> Any:
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException, TopicPartition

        consumer = connection.consumer(
            {
                "group.id": self._planned.query_id,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": "true",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": "50",
                "queued.max.messages.kbytes": "16384",
            }
        )
        wanted = []
        try:
            for topic, partition in self._inputs:
                at = OFFSET_BEGINNING
                if not (self._is_earliest or topic in self._tables):
                    # Now, and not when the first fetch is answered: what is written behind the answer's header counts.
                    at = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
                wanted.append(TopicPartition(topic, partition, at if at is not None else OFFSET_END))
            consumer.assign(wanted)
        except KafkaException as error:
            consumer.close()
            raise translated(error) from None
        return consumer

    def _run(self) -> None:
        try:
            if self._left == 0:
                self.results.end(final=LIMIT_REACHED)
            while not self.results.is_closed and self._left != 0:
                first = self._consumer.poll(POLL_S)
                if first is not None:
                    for message in (first, *self._consumer.consume(AT_ONCE, 0)):
                        self._take(message)
                    self._work()
        except (UserError, Refused, Unreachable) as error:
            self.results.end(error=str(error))
        except Exception as error:
            log.exception("The push query %s has failed", self._planned.query_id)
            self.results.end(error=str(error))
        finally:
            self.results.end()
            self._consumer.close()

    def _take(self, message: Any) -> None:
        from confluent_kafka import KafkaError

        found, error = self._inputs.get((message.topic(), message.partition())), message.error()
        if error is None:
            assert found is not None
            found.queue.append(input_record(message))
            found.is_at_end = False
        elif error.code() == KafkaError._PARTITION_EOF:
            if found is not None:
                found.is_at_end = True
        elif error.fatal() or error.code() not in PASSING_CODES:
            raise Refused(error.str(), code=error.code())

    def _work(self) -> None:
        lane = self._lane
        while self._left != 0 and not self.results.is_closed:
            found = lane.next(time.monotonic(), 0)
            if found is None:
                break
            self._driver.process(found.queue.popleft())
        for each in lane.inputs:
            self._hold(each)

    def _hold(self, found: Input) -> None:
        """A partition that runs ahead of the others fills no memory."""
        from confluent_kafka import TopicPartition

        if len(found.queue) > BUFFERED and not found.is_held:
            self._consumer.pause([TopicPartition(*found.place)])
            found.is_held = True
        elif found.is_held and len(found.queue) <= BUFFERED // 2:
            self._consumer.resume([TopicPartition(*found.place)])
            found.is_held = False

    def _deliver(self, row: Row) -> None:
        if self._left == 0:
            return
        if row.value is None and row.key is None:
            return
        if not self.results.put(result_row(self._planned, row)):
            self._left = 0
            return
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self.results.end(final=LIMIT_REACHED)


def delivering(planned: PlannedPush, properties: Mapping[str, str]) -> Plan:
    """The plan with its rows for whoever runs it."""
    node = planned.node
    last = Deliver(name="Deliver", schema=node.schema, kind=node.kind, window=node.window, input=node)
    return Plan((last,), tuple(properties.items()))


def result_row(planned: PlannedPush, row: Row) -> ResultRow:
    values = tuple(
        (row.key[place] if row.key is not None else None) if is_key
        else (row.value[place] if row.value is not None else None)
        for _, is_key, place in planned.columns
    )  # fmt: skip
    return ResultRow(values, is_tombstone=row.value is None)


def input_record(message: Any) -> InputRecord:
    return InputRecord(
        message.topic(), message.partition(), message.offset(), message.timestamp()[1], message.key(), message.value(),
        tuple(message.headers() or ()),
    )  # fmt: skip
