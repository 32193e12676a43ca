"""kafka-replica-verification: fetches from every replica of topics, all the time, and tells where they differ."""

import time
from datetime import datetime

from penstock.admin.offsets import all_positions
from penstock.admin.replica_verification import Difference, ReplicaVerification, Round
from penstock.admin.topic_filter import BadPattern, TopicFilter
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.options import COMMAND_CONFIG, Option, OptionError, Options, OptionTable
from penstock.cli.kafka.stop_signal import StopSignal
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition

OFFSETS_DIFFER = 1
DEPRECATED = "WARN This tool is deprecated and may be removed in a future major release."

TABLE = OptionTable(
    "kafka-replica-verification",
    "Validate that all replicas for a set of topics have the same data.",
    [
        Option(
            "broker-list", "REQUIRED: where to connect: one or more brokers of the cluster.", "HOST:PORT,…"
        ),
        Option("topics-include", "A regular expression for the topics.", "REGEX", ".*"),
        Option(
            "time", "Where to begin: a timestamp in ms, -1 for the end, -2 for the beginning.", "TIME", "-1"
        ),
        Option("fetch-size", "How much to fetch of one partition at a time.", "BYTES", "1048576"),
        Option("max-wait-ms", "How long a broker waits for new records.", "MS", "1000"),
        Option("report-interval-ms", "How often to tell how far it is.", "MS", "30000"),
    ],
    client_options=(COMMAND_CONFIG,),
    aliases={"bootstrap-server": "broker-list"},
    examples=["kafka-replica-verification --broker-list localhost:9092 --topics-include orders --time -2"],
)


def execute(given: Options) -> int:
    given.require("broker-list")
    for name in ("fetch-size", "max-wait-ms", "report-interval-ms"):
        if given.required_integer(name) <= 0:
            raise OptionError(f"--{name} must be greater than 0.")
    try:
        topics = TopicFilter(given.value("topics-include") or ".*")
    except BadPattern as error:
        raise UserError(str(error)) from None
    timestamp = given.required_integer("time")
    with ClusterClient(Connection(given.value("broker-list") or "", client_properties(given))) as client:
        tool.complain(DEPRECATED)
        replicas = {
            TopicPartition(topic.name or "", one.partition_index): list(one.replica_nodes)
            for topic in client.metadata().topics
            if topics.allows(topic.name or "")
            for one in topic.partitions
        }
        if not replicas:
            raise UserError(
                "No topics found. [topics-include] if specified, is either filtering out all topics or there is no topic."
            )
        verification = ReplicaVerification(
            client,
            replicas,
            {one: max(found.offset, 0) for one, found in all_positions(client, replicas, timestamp).items()},
            fetch_bytes=given.required_integer("fetch-size"),
            max_wait_ms=given.required_integer("max-wait-ms"),
        )
        print(f"{_now()}: verification process is started", flush=True)
        return _verify(verification, len(replicas), given.required_integer("report-interval-ms") / 1000)


def _verify(verification: ReplicaVerification, partitions: int, interval_s: float) -> int:
    """Until a signal, or until two replicas have another order of batches: what follows cannot be compared then."""
    stop = StopSignal()
    reported_s = time.monotonic()
    while not stop.is_given():
        found = verification.round()
        for difference in found.differences:
            _tell(difference)
        if any(one.is_of_offsets for one in found.differences):
            return OFFSETS_DIFFER
        if time.monotonic() - reported_s >= interval_s:
            reported_s = time.monotonic()
            _report(found, partitions)
    return stop.exit_code


def _tell(one: Difference) -> None:
    replicas = (one.first_replica, one.other_replica)
    if one.is_of_offsets:
        said = (
            f"partition {one.partition}: replica {replicas[0]}'s offset {one.first_offset} doesn't match "
            f"replica {replicas[1]}'s offset {one.other_offset}"
        )
    else:
        said = (
            f"partition {one.partition} has unmatched checksum at offset {one.first_offset}; replica {replicas[0]}'s "
            f"checksum {one.first_crc}; replica {replicas[1]}'s checksum {one.other_crc}"
        )
    print(f"{_now()}: {said}", flush=True)


def _report(found: Round, partitions: int) -> None:
    print(
        f"{_now()}: max lag is {found.max_lag} for partition {found.partition} at offset {found.offset} among "
        f"{partitions} partitions",
        flush=True,
    )
    for partition, replicas in found.missing.items():
        names = ",".join(map(str, replicas))
        tool.complain(f"WARN partition {partition} is not compared now: no answer from replica {names}")


def _now() -> str:
    return datetime.now().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
