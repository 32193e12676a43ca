"""kafka-producer-perf-test: sends records as fast as asked, and tells how fast and how late they were acknowledged."""

import secrets
import time
from pathlib import Path
from typing import Any, NamedTuple

from penstock.cli.kafka import tool
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.librdkafka import (
    PRODUCER_DEFAULTS,
    STATISTICS_SETTINGS,
    ClientErrors,
    ClientStatistics,
    StopSignal,
    flush,
    reason,
)
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.cli.kafka.send_statistics import SendStatistics
from penstock.client.clients import Connection, translated
from penstock.client.errors import UserError
from penstock.client.load import Payload, Throughput, chosen_payload, monotonic_payload, random_payload
from penstock.client.property_files import read_text
from penstock.client.record_sender import send
from penstock.model.ids import id_text

PAYLOADS = ("record-size", "payload-file", "payload-monotonic")
POLL_EVERY_RECORDS = 100
DELIVERY_TIMEOUT_MS = "120000"
TRANSACTION_TIMEOUT_S = 60.0
DEFAULT_TRANSACTION_MS = 3000
# Java's producer, on whose behaviour people's numbers rest: small batches, no more than 32 MiB under way.
DEFAULTS = {
    "linger.ms": "5",
    "batch.size": "16384",
    "queue.buffering.max.kbytes": "32768",
    **PRODUCER_DEFAULTS,
    **STATISTICS_SETTINGS,
}

TABLE = OptionTable(
    "kafka-producer-perf-test",
    "Sends records and tells how fast they went, and how late they were acknowledged.",
    [
        Option("topic", "REQUIRED: the topic to write to.", "NAME"),
        Option("num-records", "REQUIRED: how many records to send.", "N"),
        Option("throughput", "REQUIRED: how many records per second at most; -1 for no limit.", "RATE"),
        Option("record-size", "The size of each record in bytes. This, or one of the payloads.", "BYTES"),
        Option("payload-file", "A text file; each record is a piece of it, by chance.", "FILE"),
        Option("payload-delimiter", "What separates the pieces: a regular expression.", "REGEX", r"\n"),
        Option("payload-monotonic", "Each record is a number, one more than the one before."),
        Option(
            "command-property",
            "Properties of the producer, such as linger.ms=10 batch.size=32768; they win over --command-config.",
            "NAME=VALUE…",
        ),
        Option("transactional-id", "Send in transactions, with this id.", "ID"),
        Option(
            "transaction-duration-ms",
            f"Send in transactions, and commit each after so long ({DEFAULT_TRANSACTION_MS} where there is only an id).",
            "MS",
        ),
        Option("warmup-records", "Tell apart what follows after so many records.", "N", "0"),
        Option("reporting-interval", "A line each so many milliseconds.", "MS", "5000"),
        Option("print-metrics", "Print what the client counted, at the end."),
    ],
    old_spellings={"producer-props": "command-property", "producer.config": "command-config"},
    examples=[
        "kafka-producer-perf-test --bootstrap-server localhost:9092 --topic orders --num-records 100000 "
        "--record-size 1024 --throughput -1",
        "kafka-producer-perf-test --bootstrap-server localhost:9092 --topic orders --num-records 1000 "
        "--payload-monotonic --throughput 100 --command-property acks=1 linger.ms=0",
    ],
)


class _Plan(NamedTuple):
    topic: str
    records: int
    throughput: float
    payload: Payload
    warmup: int
    interval_s: float
    transaction_s: float | None


def execute(given: Options) -> int:
    given.require("topic", "num-records", "throughput")
    _take_words(given)
    given.modernise()
    properties = _properties(given)
    plan = _plan(given, is_transactional="transactional.id" in properties)
    bootstrap = given.value("bootstrap-server") or properties.get("bootstrap.servers")
    if bootstrap is None:
        raise UsageError(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified."
        )
    return _Sender(Connection(bootstrap, properties), plan, has_metrics=given.has("print-metrics")).run()


def _take_words(given: Options) -> None:
    """`--command-property` takes all the words that follow it."""
    option = next((name for name in ("command-property", "producer-props") if given.has(name)), None)
    for word in given.words:
        if option is None:
            raise UsageError(f"unrecognized arguments: '{word}'")
        given.add(option, word)
    for word in given.values(option or "command-property"):
        if not word.partition("=")[2]:
            raise UserError(f"Invalid property: {word}")


def _properties(given: Options) -> dict[str, str]:
    properties = {"client.id": "perf-producer-client", **client_properties(given)}
    if given.has("transactional-id"):
        properties["transactional.id"] = given.value("transactional-id") or ""
    elif given.has("transaction-duration-ms"):
        properties.setdefault("transactional.id", f"performance-producer-{id_text(secrets.token_bytes(16))}")
    if properties.get("acks", "all") in ("-1", "all") and properties.get("retries") != "0":
        properties.setdefault("enable.idempotence", "true")
    return properties


def _plan(given: Options, *, is_transactional: bool) -> _Plan:
    records = given.required_integer("num-records")
    warmup = given.required_integer("warmup-records")
    transaction_ms = given.integer("transaction-duration-ms")
    interval_ms = given.required_integer("reporting-interval")
    _check_positive("num-records", records)
    _check_positive("reporting-interval", interval_ms)
    _check_positive("transaction-duration-ms", transaction_ms)
    if warmup >= records:
        raise OptionError(
            "The value for --warmup-records must be strictly fewer than the number of records in the test, "
            "--num-records."
        )
    if is_transactional and transaction_ms is None:
        transaction_ms = DEFAULT_TRANSACTION_MS
    throughput = given.number("throughput")
    assert throughput is not None
    return _Plan(
        topic=given.value("topic") or "",
        records=records,
        throughput=throughput,
        payload=_payload(given),
        warmup=max(warmup, 0),
        interval_s=interval_ms / 1000,
        transaction_s=None if transaction_ms is None else transaction_ms / 1000,
    )


def _check_positive(name: str, number: int | None) -> None:
    if number is not None and number <= 0:
        raise OptionError(f"--{name} should be greater than zero.")


def _payload(given: Options) -> Payload:
    if sum(given.has(name) for name in PAYLOADS) != 1:
        raise UsageError("exactly one of --record-size, --payload-file or --payload-monotonic is required")
    if given.has("payload-monotonic"):
        return monotonic_payload
    if given.has("payload-file"):
        return _payload_of_file(given.value("payload-file") or "", given.value("payload-delimiter") or "")
    size = given.required_integer("record-size")
    _check_positive("record-size", size)
    return random_payload(size)


def _payload_of_file(path: str, delimiter: str) -> Payload:
    print(f"Reading payloads from: {Path(path).absolute()}")
    payload, count = chosen_payload(read_text(path), delimiter)
    if not count:
        raise UserError("File does not exist or empty file provided.")
    print(f"Number of records read: {count}", flush=True)
    return payload


class _Transactions:
    """One after the other, each for so long."""

    def __init__(self, producer: Any, duration_s: float) -> None:
        self._producer = producer
        self._duration_s = duration_s
        self._started_s: float | None = None
        producer.init_transactions(TRANSACTION_TIMEOUT_S)

    def before_record(self) -> None:
        if self._started_s is None:
            self._producer.begin_transaction()
            self._started_s = time.monotonic()

    def after_record(self) -> None:
        if self._started_s is not None and time.monotonic() - self._started_s >= self._duration_s:
            self.commit()

    def commit(self) -> None:
        if self._started_s is not None:
            self._producer.commit_transaction(TRANSACTION_TIMEOUT_S)
            self._started_s = None


class _Sender:
    def __init__(self, connection: Connection, plan: _Plan, *, has_metrics: bool) -> None:
        self._plan = plan
        self._errors = ClientErrors()
        self._stop = StopSignal()
        self._failed = 0
        self._has_metrics = has_metrics
        self._metrics = ClientStatistics()
        self._is_idempotent = connection.properties.get("enable.idempotence") == "true"
        # With transactions their own timeout bounds this one.
        is_transactional = plan.transaction_s is not None
        defaults = DEFAULTS if is_transactional else {**DEFAULTS, "message.timeout.ms": DELIVERY_TIMEOUT_MS}
        self._producer = connection.producer(
            defaults, error_cb=self._errors, on_delivery=self._on_delivery, stats_cb=self._metrics
        )

    def run(self) -> int:
        from confluent_kafka import KafkaException

        try:
            left = self._send_all()
        except KafkaException as error:
            raise translated(error) from None
        self._statistics.summarise()
        if self._has_metrics:
            self._metrics.show(self._producer.poll)
        if self._stop.is_given():
            return self._stop.exit_code
        if left or self._failed:
            tool.complain(f"{left + self._failed} records were not acknowledged")
            return 1
        return 0

    def _send_all(self) -> int:
        """How many records have no answer in the end. After a signal nothing is waited for."""
        plan, producer = self._plan, self._producer
        transactions = None if plan.transaction_s is None else _Transactions(producer, plan.transaction_s)
        if transactions is None and self._is_idempotent:
            self._metrics.await_producer_id(producer.poll)
        if plan.warmup:
            print(
                f"Warmup first {plan.warmup} records. Steady state results will print after the complete test "
                "summary.",
                flush=True,
            )
        self._statistics = SendStatistics(plan.records, warmup=plan.warmup, interval_s=plan.interval_s)
        pace = Throughput(plan.throughput)
        for number in range(plan.records):
            pace.wait(number, self._pause, self._stop.is_given)
            if self._stop.is_given():
                return 0
            if transactions is not None:
                transactions.before_record()
            send(producer, plan.topic, value=plan.payload(number))
            if number % POLL_EVERY_RECORDS == 0:
                self._pause(0)
            if transactions is not None:
                transactions.after_record()
        if transactions is not None:
            transactions.commit()
        return flush(producer, self._is_over)

    def _pause(self, pause_s: float) -> None:
        self._producer.poll(pause_s)
        self._statistics.report()
        self._errors.check()

    def _is_over(self) -> bool:
        self._statistics.report()
        self._errors.check()
        return self._stop.is_given()

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is None:
            self._statistics.add(len(message), (message.latency() or 0.0) * 1000)
        else:
            self._failed += 1
            self._errors.tell(
                f"ERROR Error when sending message to topic {self._plan.topic} with error: {reason(error)}"
            )
