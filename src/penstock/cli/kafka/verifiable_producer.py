"""kafka-verifiable-producer: sends numbers that count up, and prints of each whether it was acknowledged."""

import time
from typing import Any, NamedTuple

from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.librdkafka import PRODUCER_DEFAULTS, ClientErrors, StopSignal, flush, reason
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable
from penstock.cli.kafka.tool import print_event, text_of
from penstock.client.clients import Connection, translated
from penstock.client.error_names import full_exception_name
from penstock.client.errors import Refused, Unreachable
from penstock.client.load import Throughput
from penstock.client.record_sender import send

ACKS = ("0", "1", "-1")
ENDLESS = -1
UNKNOWN_OFFSET = -1
CLIENT_EXCEPTION = "org.apache.kafka.common.KafkaException"

TABLE = OptionTable(
    "kafka-verifiable-producer",
    "Writes numbers, each one higher than the last, and prints what became of them as lines of JSON.",
    [
        Option("topic", "REQUIRED: the topic to write to.", "NAME"),
        Option("max-messages", "End after so many; -1 goes on until it is ended.", "N", "-1"),
        Option("throughput", "How many records per second at most; -1 for no limit.", "RATE", "-1"),
        Option("acks", f"Which replicas must have a record: {', '.join(ACKS)} (all).", "ACKS", "-1"),
        Option(
            "message-create-time",
            "The timestamp of the first record, in ms; time goes on from there. -1 for now.",
            "MS",
            "-1",
        ),
        Option("value-prefix", "A number that stands before each value, with a dot.", "N"),
        Option("repeating-keys", "Keys from 0 up to this number, not included, again and again.", "N"),
    ],
    old_spellings={"producer.config": "command-config"},
    examples=[
        "kafka-verifiable-producer --bootstrap-server localhost:9092 --topic orders --max-messages 100",
        "kafka-verifiable-producer --bootstrap-server localhost:9092 --topic orders --throughput 10 --repeating-keys 5",
    ],
)


class _Plan(NamedTuple):
    topic: str
    max_messages: int
    throughput: float
    create_time_ms: int | None
    prefix: int | None
    repeating_keys: int | None


def execute(given: Options) -> int:
    given.require("topic", "bootstrap-server")
    given.modernise()
    plan = _plan(given)
    acks = given.value("acks") or ""
    if acks not in ACKS:
        raise OptionError(f"argument --acks: invalid choice: '{acks}' (choose from {{{','.join(ACKS)}}})")
    # Nothing is sent twice, so that each answer is the answer to one record; a file may say otherwise.
    properties = {
        "acks": acks,
        "retries": "0",
        "client.id": "verifiable-producer",
        **client_properties(given),
    }
    return _Session(Connection(given.value("bootstrap-server") or "", properties), plan).run()


def _plan(given: Options) -> _Plan:
    throughput = given.number("throughput")
    assert throughput is not None
    repeating_keys = given.integer("repeating-keys")
    if repeating_keys is not None and repeating_keys <= 0:
        raise OptionError("--repeating-keys must be greater than 0.")
    create_time_ms = given.required_integer("message-create-time")
    return _Plan(
        topic=given.value("topic") or "",
        max_messages=given.required_integer("max-messages"),
        throughput=throughput,
        create_time_ms=None if create_time_ms < 0 else create_time_ms,
        prefix=given.integer("value-prefix"),
        repeating_keys=repeating_keys,
    )


class _Session:
    def __init__(self, connection: Connection, plan: _Plan) -> None:
        self._plan = plan
        self._sent = 0
        self._acked = 0
        self._errors = ClientErrors()
        self._stop = StopSignal()
        self._producer = connection.producer(
            PRODUCER_DEFAULTS, error_cb=self._errors, on_delivery=self._on_delivery
        )

    def run(self) -> int:
        print_event("startup_complete")
        self._started_s = time.monotonic()
        try:
            self._send_all()
        finally:
            flush(self._producer, lambda: self._errors.is_fatal)
            self._end()
        self._errors.check()
        if self._stop.is_given():
            return self._stop.exit_code
        return 0 if self._acked == self._sent else 1

    def _send_all(self) -> None:
        pace = Throughput(self._plan.throughput)
        while self._plan.max_messages == ENDLESS or self._sent < self._plan.max_messages:
            pace.wait(self._sent, self._producer.poll, self._stop.is_given)
            self._errors.check()
            if self._stop.is_given():
                return
            self._send()
            self._producer.poll(0)

    def _send(self) -> None:
        from confluent_kafka import KafkaException

        plan, number = self._plan, self._sent
        value = str(number) if plan.prefix is None else f"{plan.prefix}.{number}"
        key = None if plan.repeating_keys is None else str(number % plan.repeating_keys)
        record: dict[str, Any] = {"value": value, "key": key}
        if plan.create_time_ms is not None:
            record["timestamp"] = plan.create_time_ms + int((time.monotonic() - self._started_s) * 1000)
        self._sent += 1
        try:
            send(self._producer, plan.topic, **record)
        except KafkaException as error:
            cause = translated(error)
            name = cause.exception_name if isinstance(cause, Refused) else CLIENT_EXCEPTION
            self._tell_failure(key, value, name, str(cause))
            if isinstance(cause, Unreachable):
                raise cause from None

    def _end(self) -> None:
        print_event("shutdown_complete")
        elapsed_s = time.monotonic() - self._started_s
        target = self._plan.throughput
        print_event(
            "tool_data",
            sent=self._sent,
            acked=self._acked,
            target_throughput=int(target) if target == int(target) else target,
            avg_throughput=self._acked / elapsed_s if elapsed_s else 0.0,
        )

    def _on_delivery(self, error: Any, message: Any) -> None:
        key, value = text_of(message.key()), text_of(message.value())
        if error is None:
            self._acked += 1
            print_event(
                "producer_send_success",
                key=key,
                value=value,
                offset=UNKNOWN_OFFSET if message.offset() is None else message.offset(),
                topic=message.topic(),
                partition=message.partition(),
            )
        else:
            name = full_exception_name(error.code()) if error.code() > 0 else CLIENT_EXCEPTION
            self._tell_failure(key, value, name, reason(error))

    def _tell_failure(self, key: str | None, value: str | None, exception: str, message: str) -> None:
        print_event(
            "producer_send_error",
            topic=self._plan.topic,
            key=key,
            value=value,
            exception=f"class {exception}",
            message=message,
        )
