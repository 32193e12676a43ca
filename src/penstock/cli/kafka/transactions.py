"""kafka-transactions: which transactions there are, what they do to partitions, and how to end one that hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.admin import transactions as admin
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import Options
from penstock.cli.kafka.transactions_options import SUBCOMMANDS
from penstock.cli.kafka.transactions_options import TABLE as TABLE
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused, Unreachable
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.java_order import partitions_in_hash_map_order

LIST_HEADERS = ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
DESCRIBE_HEADERS = [
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
]
PRODUCER_HEADERS = [
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
]
HANGING_HEADERS = [
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
]
MINUTE_MS = 60_000


class _Failed(Exception):
    """One line for stderr."""


def execute(given: Options) -> int:
    command = SUBCOMMANDS.check(given)
    try:
        with cluster_client(given) as client:
            COMMANDS[command](given, client)
    except _Failed as error:
        tool.complain(str(error))
        return 1
    return 0


@contextmanager
def _doing(what: str) -> Iterator[None]:
    try:
        yield
    except (Refused, Unreachable) as error:
        raise _Failed(f"{what}: {error}") from None


def _list(given: Options, client: ClusterClient) -> None:
    longer_than_ms = given.integer("duration-filter")
    pattern = given.value("transactional-id-pattern")
    with _doing("Failed to list transactions"):
        found = admin.listed_transactions(
            client,
            longer_than_ms=admin.NO_DURATION if longer_than_ms is None else longer_than_ms,
            pattern=pattern,
        )
    tool.print_table(
        LIST_HEADERS,
        [[one.transactional_id, str(one.coordinator), str(one.producer_id), one.state] for one in found],
    )


def _describe(given: Options, client: ClusterClient) -> None:
    transactional_id = given.value("transactional-id") or ""
    what = f"Failed to describe transaction state of transactional-id `{transactional_id}`"
    with _doing(what):
        try:
            found = admin.described_transaction(client, transactional_id)
        except Refused as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            request = f"DescribeTransactions request for transactionalId `{transactional_id}`"
            raise _Failed(
                f"{what}: {request} failed because the ID could not be found. "
                "The command `list` shows those that are there."
            ) from None
    started = duration = "None"
    if found.started_ms is not None:
        started = str(found.started_ms)
        duration = str(round(time.time() * 1000) - found.started_ms)
    row = [
        str(found.coordinator),
        transactional_id,
        str(found.producer_id),
        str(found.producer_epoch),
        found.state,
        str(found.timeout_ms),
        started,
        duration,
        ",".join(map(str, partitions_in_hash_map_order(found.partitions))),
    ]
    tool.print_table(DESCRIBE_HEADERS, [row])


def _partition(given: Options) -> TopicPartition:
    return TopicPartition(given.value("topic") or "", given.required_integer("partition"))


def _describe_producers(given: Options, client: ClusterClient) -> None:
    partition = _partition(given)
    broker_id = given.integer("broker-id")
    where = "leader" if broker_id is None else f"broker {broker_id}"
    with _doing(f"Failed to describe producers for partition {partition} on {where}"):
        found = admin.producers(client, [partition], broker_id=broker_id)[partition]
    rows = [
        [
            str(one.producer_id),
            str(one.producer_epoch),
            str(one.coordinator_epoch),
            str(one.last_sequence),
            str(one.last_timestamp_ms),
            "None" if one.start_offset is None else str(one.start_offset),
        ]
        for one in found
    ]
    tool.print_table(PRODUCER_HEADERS, rows)


def _abort(given: Options, client: ClusterClient) -> None:
    partition = _partition(given)
    start_offset = given.integer("start-offset")
    producer_id = given.integer("producer-id")
    if start_offset is None and producer_id is None:
        raise _Failed(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if start_offset is not None:
        marker = _marker_at(client, partition, start_offset)
    else:
        assert producer_id is not None
        epochs = []
        for name in ("producer-epoch", "coordinator-epoch"):
            epoch = given.integer(name)
            if epoch is None:
                raise _Failed(f"Missing required argument --{name}")
            epochs.append(epoch)
        marker = admin.AbortMarker(partition, producer_id, *epochs)
    shown = (
        f"AbortTransactionSpec(topicPartition={marker.partition}, producerId={marker.producer_id}, "
        f"producerEpoch={marker.producer_epoch}, coordinatorEpoch={max(0, marker.coordinator_epoch)})"
    )
    with _doing(f"Failed to abort transaction {shown}"):
        admin.write_abort_marker(client, marker)


def _marker_at(client: ClusterClient, partition: TopicPartition, start_offset: int) -> admin.AbortMarker:
    with _doing(f"Failed to validate producer state for partition {partition}"):
        found = admin.producers(client, [partition])[partition]
    for one in found:
        if one.start_offset == start_offset:
            return admin.AbortMarker(partition, one.producer_id, one.producer_epoch, one.coordinator_epoch)
    raise _Failed(
        f"Could not find any open transactions starting at offset {start_offset} on partition {partition}"
    )


def _find_hanging(given: Options, client: ClusterClient) -> None:
    topic = given.value("topic")
    broker_id = given.integer("broker-id")
    number = given.integer("partition")
    if topic is None and broker_id is None:
        raise _Failed(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if number is not None and topic is None:
        raise _Failed("The --partition argument requires --topic to be provided")
    longer_than_ms = given.required_integer("max-transaction-timeout") * MINUTE_MS
    if topic is not None and number is not None:
        partitions = [TopicPartition(topic, number)]
    else:
        partitions = _replicas(client, topic, broker_id)
    with _doing(f"Failed to describe producers for {len(partitions)} partitions"):
        found = admin.hanging(client, partitions, longer_than_ms=longer_than_ms, broker_id=broker_id)
    now_ms = round(time.time() * 1000)
    rows = [
        [
            partition.topic,
            str(partition.partition),
            str(producer.producer_id),
            str(producer.producer_epoch),
            str(producer.coordinator_epoch),
            str(producer.start_offset),
            str(producer.last_timestamp_ms),
            str((now_ms - producer.last_timestamp_ms) // MINUTE_MS),
        ]
        for partition, producer in found
    ]
    tool.print_table(HANGING_HEADERS, rows)


def _replicas(client: ClusterClient, topic: str | None, broker_id: int | None) -> list[TopicPartition]:
    described = client.metadata(None if topic is None else [topic])
    for one in described.topics:
        if one.error_code:
            with _doing("Failed to describe 1 topics"):
                from penstock.client.error_names import refused

                raise refused(one.error_code)
    return [
        TopicPartition(each.name or "", one.partition_index)
        for each in described.topics
        for one in each.partitions
        if broker_id is None or broker_id in one.replica_nodes
    ]


def _force_terminate(given: Options, client: ClusterClient) -> None:
    transactional_id = given.value("transactionalId") or ""
    with _doing(f"Failed to force terminate transactionalId `{transactional_id}`"):
        admin.fence_producer(client, transactional_id)


COMMANDS = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _force_terminate,
}
