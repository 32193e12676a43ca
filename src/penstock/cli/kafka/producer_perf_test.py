"""kafka-producer-perf-test: sends records as fast as asked, and tells how fast and how late they were acknowledged."""

import secrets
from pathlib import Path

from penstock.cli.kafka import tool
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.cli.kafka.stop_signal import StopSignal
from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.client.property_files import read_text
from penstock.load.measuring import Payload, chosen_payload, monotonic_payload, random_payload
from penstock.load.sending import Sender, SendPlan
from penstock.model.ids import id_text

PAYLOADS = ("record-size", "payload-file", "payload-monotonic")
DEFAULT_TRANSACTION_MS = 3000
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
    return _sent(Connection(bootstrap, properties), plan, has_metrics=given.has("print-metrics"))


def _sent(connection: Connection, plan: SendPlan, *, has_metrics: bool) -> int:
    stop = StopSignal()
    sender = Sender(connection, plan, say=tool.say, complain=tool.complain, is_over=stop.is_given)
    unanswered = sender.run()
    if has_metrics:
        print("\n".join(sender.metrics()))
    if stop.is_given():
        return stop.exit_code
    if unanswered:
        tool.complain(f"{unanswered} records were not acknowledged")
    return 1 if unanswered else 0


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


def _plan(given: Options, *, is_transactional: bool) -> SendPlan:
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
    return SendPlan(
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
