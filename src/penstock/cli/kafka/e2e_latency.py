"""kafka-e2e-latency: how long a record takes from a producer to a consumer, one record at a time."""

import time
from typing import Any, NamedTuple

from penstock.admin import Cluster
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.librdkafka import POLL_S, ClientErrors, StopSignal, reason
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.client.clients import Connection, metadata, translated
from penstock.client.errors import NoSuchTopic, UserError
from penstock.client.load import Latencies, RandomLetters
from penstock.client.record_sender import send

REQUIRED = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
POSITIONAL_DEPRECATED = (
    "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use named "
    "arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, --record-size, --command-config"
)
NULL_SIZE = -1
NEW_TOPIC_PARTITIONS, NEW_TOPIC_REPLICATION = 1, 1
PROGRESS_EVERY_RECORDS = 1000
POLL_TIMEOUT_MS = 60_000
QUICK_PRODUCER = {"linger.ms": "0", "socket.nagle.disable": "true"}
QUICK_CONSUMER = {
    "group.id": "penstock-e2e-latency",
    "enable.auto.commit": "false",
    "socket.nagle.disable": "true",
}

TABLE = OptionTable(
    "kafka-e2e-latency",
    "Sends one record after the other and tells how long each took to its reader.",
    [
        Option("topic", "REQUIRED: the topic; it is made where it is not there.", "NAME"),
        Option("num-records", "REQUIRED: how many records to send.", "N"),
        Option("producer-acks", "REQUIRED: which replicas must have a record: 1 or all.", "ACKS"),
        Option("record-size", "REQUIRED: the size of each record in bytes.", "BYTES"),
        Option("record-key-size", "The size of each key in bytes; none with 0.", "BYTES", "0"),
        Option("num-headers", "How many headers each record has.", "N", "0"),
        Option("record-header-key-size", "The size of each header's name in bytes.", "BYTES", "0"),
        Option("record-header-size", "The size of each header in bytes; -1 for null.", "BYTES", "0"),
    ],
    examples=[
        "kafka-e2e-latency --bootstrap-server localhost:9092 --topic latency --num-records 10000 --producer-acks all "
        "--record-size 100",
        "kafka-e2e-latency localhost:9092 latency 10000 all 100",
    ],
)


class _Plan(NamedTuple):
    topic: str
    records: int
    acks: str
    size: int
    key_size: int
    headers: int
    header_key_size: int
    header_size: int


class _Record(NamedTuple):
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]


def execute(given: Options) -> int:
    _take_positions(given)
    given.require(*REQUIRED)
    plan = _plan(given)
    cluster = connection(given)
    partitions = _partitions(cluster, plan.topic)
    return _Round(cluster, plan, partitions).run()


def _take_positions(given: Options) -> None:
    """The older form: the same values without names, in this order."""
    if not given.words:
        return
    if given.has("topic") or len(given.words) not in (len(REQUIRED), len(REQUIRED) + 1):
        raise UsageError(
            f"Invalid number of arguments. Expected {len(REQUIRED)} or {len(REQUIRED) + 1} positional arguments, but "
            f"got {len(given.words)}. Usage: bootstrap-server topic num-records producer-acks record-size [optional] "
            "command-config"
        )
    print(POSITIONAL_DEPRECATED, flush=True)
    for name, word in zip((*REQUIRED, "command-config"), given.words, strict=False):
        given.add(name, word)


def _plan(given: Options) -> _Plan:
    acks = given.value("producer-acks") or ""
    if acks not in ("1", "all"):
        raise OptionError(
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. Please use '1' "
            "or 'all'."
        )
    records = given.required_integer("num-records")
    if records <= 0:
        raise OptionError("Value for --num-records must be a positive integer.")
    header_size = given.required_integer("record-header-size")
    if header_size < NULL_SIZE:
        raise OptionError(
            "Value for --record-header-size must be a non-negative integer or -1 for null header value."
        )
    return _Plan(
        topic=given.value("topic") or "",
        records=records,
        acks=acks,
        size=_size(given, "record-size"),
        key_size=_size(given, "record-key-size"),
        headers=_size(given, "num-headers"),
        header_key_size=_size(given, "record-header-key-size"),
        header_size=header_size,
    )


def _size(given: Options, name: str) -> int:
    number = given.required_integer(name)
    if number < 0:
        raise OptionError(f"Value for --{name} must be a non-negative integer.")
    return number


def _partitions(cluster: Connection, topic: str) -> list[int]:
    """Of the topic, which is made where it is missing."""
    with Cluster.over(cluster) as admin:
        try:
            return [each.partition for each in admin.topics.partitions(topic)]
        except NoSuchTopic:
            print(
                f'Topic "{topic}" does not exist. Will create topic with {NEW_TOPIC_PARTITIONS} partition(s) and '
                f"replication factor = {NEW_TOPIC_REPLICATION}",
                flush=True,
            )
        admin.topics.create(topic, partitions=NEW_TOPIC_PARTITIONS, replication_factor=NEW_TOPIC_REPLICATION)
    return list(range(NEW_TOPIC_PARTITIONS))


class _Round:
    """One record after the other: sent, acknowledged, and read again."""

    def __init__(self, cluster: Connection, plan: _Plan, partitions: list[int]) -> None:
        self._plan = plan
        self._letters = RandomLetters()
        self._errors = ClientErrors()
        self._stop = StopSignal()
        self._failure: str | None = None
        acked = Connection(cluster.bootstrap, {**cluster.properties, "acks": plan.acks})
        self._producer = acked.producer(QUICK_PRODUCER, error_cb=self._errors, on_delivery=self._on_delivery)
        self._consumer = cluster.consumer(QUICK_CONSUMER, error_cb=self._errors)
        self._read_from_the_end(partitions)

    def _read_from_the_end(self, partitions: list[int]) -> None:
        """By number, so that no record is sent before the consumer knows where it begins."""
        from confluent_kafka import KafkaException, TopicPartition

        topic = self._plan.topic
        metadata(self._consumer, topic)
        try:
            ends = [
                self._consumer.get_watermark_offsets(TopicPartition(topic, number), POLL_TIMEOUT_MS / 1000)[1]
                for number in partitions
            ]
        except KafkaException as error:
            raise translated(error) from None
        self._consumer.assign(
            [TopicPartition(topic, number, end) for number, end in zip(partitions, ends, strict=True)]
        )

    def run(self) -> int:
        latencies = Latencies(self._plan.records)
        for number in range(self._plan.records):
            latency_ms = self._exchange(self._record())
            if latency_ms is None:
                break
            latencies.add(latency_ms)
            if number % PROGRESS_EVERY_RECORDS == 0:
                print(f"{number}\t{latency_ms}", flush=True)
        self._consumer.close()
        half, nearly_all, all_but_few = latencies.percentiles_ms(0.5, 0.99, 0.999)
        print(f"Avg latency: {latencies.average_ms:.4f} ms")
        print(f"Percentiles: 50th = {half}, 99th = {nearly_all}, 99.9th = {all_but_few}")
        return self._stop.exit_code

    def _record(self) -> _Record:
        plan, letters = self._plan, self._letters
        return _Record(
            key=letters.take(plan.key_size) if plan.key_size else None,
            value=letters.take(plan.size),
            headers=[
                (
                    letters.take(plan.header_key_size).decode(),
                    None if plan.header_size == NULL_SIZE else letters.take(plan.header_size),
                )
                for _ in range(plan.headers)
            ],
        )

    def _exchange(self, record: _Record) -> float | None:
        """Milliseconds until the record is read; None after a signal."""
        from confluent_kafka import KafkaException

        started_s = time.perf_counter()
        try:
            send(
                self._producer,
                self._plan.topic,
                value=record.value,
                key=record.key,
                headers=record.headers or None,
            )
        except KafkaException as error:
            raise translated(error) from None
        read = self._read()
        elapsed_ms = (time.perf_counter() - started_s) * 1000
        if read is None:
            return None
        _compare(record, read)
        return elapsed_ms

    def _read(self) -> Any:
        """The next record, once the one that was sent is acknowledged; None after a signal."""
        deadline_s = time.monotonic() + POLL_TIMEOUT_MS / 1000
        while time.monotonic() < deadline_s:
            if self._stop.is_given():
                return None
            self._errors.check()
            if self._producer.flush(POLL_S):
                continue
            if self._failure is not None:
                raise UserError(self._failure)
            message = self._consumer.poll(POLL_S)
            if message is None:
                continue
            if message.error() is None:
                return message
            self._errors(message.error())
        raise UserError(f"poll() timed out before finding a result (timeout:[{POLL_TIMEOUT_MS}ms])")

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = reason(error)


def _compare(sent: _Record, read: Any) -> None:
    """Another one's record in between would make every number after it wrong."""
    for name, ours, theirs in (
        ("value", sent.value, read.value() or b""),
        ("key", sent.key, read.key()),
        ("headers", sent.headers, read.headers() or []),
    ):
        if ours != theirs:
            raise UserError(
                f"The message {name} read [{theirs!r}] did not match the message {name} sent [{ours!r}]"
            )
