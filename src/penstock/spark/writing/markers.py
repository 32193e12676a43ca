"""Which batch a task wrote last, and how many rows it had: told by the cluster, in the task's own transactions.

Twice in each transaction. As the offset of a group, which is read at once; but the cluster forgets offsets after
`offsets.retention.minutes`, and operators delete groups. So also as a record of a compacted topic, which stays; it is
looked for where there is no offset: in the first batch of a query, and of one that stood still for weeks.

    group penstock-spark-<query>, topic __penstock_spark_batches, partition 2: offset 8, metadata "150 5e8f…/a41c…"
    topic __penstock_spark_batches, partition 2: key "<query>-2", value "8"

say that task 2 has written batch 7, with 150 rows, in the run 5e8f… of the query, by the write a41c… of that run. <query> is
the query's id and the topic that it writes to: a checkpoint that is copied, to write elsewhere, has marks of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from penstock.client.librdkafka_calls import RETRIABLE_CODES, retriable_calls
from penstock.consumer.kept_records import NotDecided, read_kept
from penstock.consumer.made_topics import made_patiently, make_internal_topic
from penstock.spark.failures import NotWritten
from penstock.spark.kafka_properties import cluster_only, for_librdkafka
from penstock.spark.reading.topics import why_unreachable
from penstock.spark.writing.producing import FIRST_CONTACT_TIMEOUT_S, RECOVERY_SETTINGS
from penstock.spark.writing.tasks import MARKER_PARTITIONS, Marker, Task, Write

log = logging.getLogger("penstock.spark")

MARKER_TOPIC = "__penstock_spark_batches"
MARKER_TOPIC_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(4 * 1024 * 1024)}
OPERATION_TIMEOUT_S = 10.0  # one call; it is made again while the broker says that it may help
PATIENCE_S = 120.0  # all calls of one step together

# Who may not make topics may have been given this one; if not, the first transaction says so.
MAY_BE_THERE = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)


NOTHING_WRITTEN = Marker(0, None)


class Markers:
    """Reads those of one task, and says what belongs into its next transaction."""

    def __init__(self, task: Task, properties: Mapping[str, str]) -> None:
        self._transactional_id = task.transactional_id
        self._has_records = task.is_of_a_stream
        self._partition = task.marker_partition
        self._block_start = task.partition - task.marker_partition
        self._settings: dict[str, Any] = {
            **RECOVERY_SETTINGS,
            **for_librdkafka(cluster_only(properties)),
            "group.id": task.marker_group,
            "enable.auto.commit": False,
        }
        # Waits for the task's transaction that is being ended.
        self._consumer = self._new_consumer({"isolation.level": "read_committed"})
        self.by_partition: dict[int, Marker] = {}  # of tasks, as far as they have offsets in the same group

    @property
    def group_metadata(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def read(self) -> Marker:
        """After the task's transactional id was taken over: from then on nobody else changes it."""
        self._read_offsets()
        own = self.by_partition.get(self._block_start + self._partition)
        if own is not None:
            return own
        return self._read_records() if self._has_records else NOTHING_WRITTEN

    def as_offset(self, marker: Marker) -> TopicPartition:
        return TopicPartition(MARKER_TOPIC, self._partition, marker.next_batch_id, marker.metadata)

    def as_record(self, next_batch_id: int) -> dict[str, Any] | None:
        if not self._has_records:
            return None
        return {
            "topic": MARKER_TOPIC,
            "partition": self._partition,
            "key": self._transactional_id,
            "value": f"{next_batch_id}",
        }

    def close(self) -> None:
        self._consumer.close()

    def _new_consumer(self, settings: Mapping[str, Any]) -> Consumer:
        return Consumer({**self._settings, **settings}, logger=log.getChild("client"))

    def _read_offsets(self) -> None:
        """Its own once they are decided; those of other tasks as they are. A transaction of theirs may stay open for long: until
        this task is done and theirs begins, when there are fewer cores than tasks.
        """
        others = self._new_consumer({"isolation.level": "read_uncommitted"})
        try:
            known = self._offsets(others, range(MARKER_PARTITIONS))
        finally:
            others.close()
        known.pop(self._partition, None)
        known |= self._offsets(self._consumer, [self._partition])
        self.by_partition = {self._block_start + partition: marker for partition, marker in known.items()}

    def _offsets(self, consumer: Consumer, partitions: Iterable[int]) -> dict[int, Marker]:
        wanted = [TopicPartition(MARKER_TOPIC, partition) for partition in partitions]

        def read() -> dict[int, Marker]:
            known = {}
            found = consumer.committed(wanted, timeout=OPERATION_TIMEOUT_S)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
                if each.offset >= 0:
                    known[each.partition] = _marker(each.offset, each.metadata or "")
            return known

        what = "the number of the last batch"
        return retriable_calls(read, what, timeout_s=PATIENCE_S, log=log, codes=RETRIABLE_CODES)

    def _read_records(self) -> Marker:
        """The last of the task's; other tasks' are passed."""
        key = self._transactional_id.encode()
        try:
            kept = read_kept(
                self._new_consumer,
                TopicPartition(MARKER_TOPIC, self._partition),
                lambda found: found == key,
                patience_s=PATIENCE_S,
            )
        except NotDecided as error:
            raise NotWritten(str(error)) from error
        return Marker(int(kept[-1].value() or b"0"), None) if kept else NOTHING_WRITTEN


def _marker(next_batch_id: int, metadata: str) -> Marker:
    rows, _, write = metadata.partition(" ")
    run_id, is_whole, write_id = write.partition("/")
    return Marker(
        next_batch_id,
        int(rows) if rows.isdecimal() else None,
        Write(run_id, write_id) if is_whole else None,
    )


_clusters_with_marker_topic: set[str] = set()


def ensure_marker_topic(properties: Mapping[str, str]) -> None:
    """Where it is there, any broker says so; the controller is needed to make it, and waited for."""
    where = str(properties["bootstrap.servers"])
    if where in _clusters_with_marker_topic:
        return

    def make() -> None:
        admin = AdminClient({**for_librdkafka(cluster_only(properties))}, logger=log.getChild("client"))
        try:
            is_new = make_internal_topic(
                admin,
                MARKER_TOPIC,
                partitions=MARKER_PARTITIONS,
                settings=MARKER_TOPIC_SETTINGS,
                timeout_s=FIRST_CONTACT_TIMEOUT_S,
            )
        except KafkaException as error:
            if error.args[0].code() in MAY_BE_THERE:
                return
            is_local = error.args[0].code() < 0  # librdkafka says no more than that nobody answered
            if is_local and (complaint := why_unreachable(properties)) is not None:
                raise NotWritten(complaint) from error
            raise
        if not is_new:
            _check_marker_topic(admin, where)

    try:
        made_patiently(make, MARKER_TOPIC, timeout_s=PATIENCE_S, log=log)
    except KafkaException as error:
        raise NotWritten(
            f"'exactlyOnce' needs the topic {MARKER_TOPIC}, which cannot be made at {where}: "
            f"{error.args[0].str()}"
        ) from error
    _clusters_with_marker_topic.add(where)


def forget_marker_topic(properties: Mapping[str, str]) -> None:
    """After a failure: it may have been deleted."""
    _clusters_with_marker_topic.discard(str(properties["bootstrap.servers"]))


def _check_marker_topic(admin: Any, where: str) -> None:
    """Where it was deleted under a query, the cluster may have made it as it makes any topic: markers expire in that."""
    resource = ConfigResource(ResourceType.TOPIC, MARKER_TOPIC)
    try:
        configs = admin.describe_configs([resource], request_timeout=OPERATION_TIMEOUT_S)[resource]
        policy = configs.result(OPERATION_TIMEOUT_S)["cleanup.policy"].value
        known = admin.list_topics(MARKER_TOPIC, timeout=OPERATION_TIMEOUT_S).topics[MARKER_TOPIC]
    except (KafkaException, TimeoutError) as error:
        log.info("%s cannot be described: %s", MARKER_TOPIC, error)  # not for us to see
        return
    wanted = MARKER_TOPIC_SETTINGS["cleanup.policy"]
    if policy != wanted or len(known.partitions) < MARKER_PARTITIONS:
        raise NotWritten(
            f"the topic {MARKER_TOPIC} at {where} was not made by this sink: it has cleanup.policy={policy} and "
            f"{len(known.partitions)} partitions, and 'exactlyOnce' needs cleanup.policy={wanted} and "
            f"{MARKER_PARTITIONS}. Alter it; or delete it while no query with 'exactlyOnce' is in the middle of a batch"
        )
