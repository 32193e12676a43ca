"""kafka-consumer-perf-test: reads so many records as fast as they come, and tells how fast that was."""

import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from penstock.admin.topic_filter import TopicFilter
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.librdkafka import (
    POLL_S,
    STATISTICS_SETTINGS,
    TOPIC_PATIENCE,
    ClientErrors,
    ClientStatistics,
    StopSignal,
    poll_batch,
)
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.model.java_dates import date_text

MEGABYTE = 1024 * 1024
THREAD_ID = 0
DEPRECATED = "Warning: --{} is deprecated. Use --{} instead."
RATES_HEADER = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
FETCH_HEADER = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"

TABLE = OptionTable(
    "kafka-consumer-perf-test",
    "Reads records and tells how fast they came.",
    [
        Option("topic", "The topic to read.", "NAME"),
        Option("include", "A regular expression for the topics to read.", "REGEX"),
        Option("num-records", "REQUIRED: how many records to read.", "N"),
        Option("group", "The consumer group; perf-consumer-NNNNN where it is left out.", "NAME"),
        Option("fetch-size", "How much to fetch of one partition at a time.", "BYTES", "1048576"),
        Option("socket-buffer-size", "The receive buffer of the connection.", "BYTES", "2097152"),
        Option("from-latest", "Begin with the newest record where the group has no offset yet."),
        Option("timeout", "End when no record came for so long.", "MS", "10000"),
        Option("reporting-interval", "With --show-detailed-stats: how often.", "MS", "5000"),
        Option("show-detailed-stats", "A line for each interval instead of one for all of it."),
        Option("hide-header", "Leave out the line that names the columns."),
        Option(
            "date-format",
            "How times are written, as by SimpleDateFormat.",
            "PATTERN",
            "yyyy-MM-dd HH:mm:ss:SSS",
        ),
        Option("print-metrics", "Print what the client counted, at the end."),
        Option("command-property", "A property of the consumer; wins over --command-config.", "NAME=VALUE"),
    ],
    old_spellings={"messages": "num-records", "consumer.config": "command-config"},
    examples=[
        "kafka-consumer-perf-test --bootstrap-server localhost:9092 --topic orders --num-records 100000",
        "kafka-consumer-perf-test --bootstrap-server localhost:9092 --include 'orders-.*' --num-records 100000 "
        "--show-detailed-stats --reporting-interval 1000",
    ],
)


class _Plan(NamedTuple):
    subscription: str
    records: int
    timeout_ms: int
    interval_ms: int
    date_format: str
    is_detailed: bool


def execute(given: Options) -> int:
    given.modernise(warning=DEPRECATED)
    given.require("bootstrap-server", "num-records")
    plan = _plan(given)
    try:
        date_text(plan.date_format, datetime.now())
    except ValueError as error:
        raise UserError(f"--date-format has {error}") from None
    reader = _Reader(
        Connection(given.value("bootstrap-server") or "", _properties(given)),
        plan,
        has_metrics=given.has("print-metrics"),
    )
    if not given.has("hide-header"):
        times = "time, threadId" if plan.is_detailed else "start.time, end.time"
        print(f"{times}, {RATES_HEADER}, {FETCH_HEADER}", flush=True)
    return reader.run()


def _plan(given: Options) -> _Plan:
    if given.has("topic") == given.has("include"):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    interval_ms = given.required_integer("reporting-interval")
    if interval_ms <= 0:
        raise OptionError("Reporting interval must be greater than 0.")
    topic, pattern = given.value("topic"), given.value("include") or ""
    if topic is None:
        TopicFilter(pattern)
    return _Plan(
        subscription=f"^({pattern})$" if topic is None else topic,
        records=given.required_integer("num-records"),
        timeout_ms=given.required_integer("timeout"),
        interval_ms=interval_ms,
        date_format=given.value("date-format") or "",
        is_detailed=given.has("show-detailed-stats"),
    )


def _properties(given: Options) -> dict[str, str]:
    """What the options say wins over what the properties do, as in Kafka's tool."""
    return {
        "client.id": "perf-consumer-client",
        **client_properties(given),
        "group.id": given.value("group") or f"perf-consumer-{random.randrange(100_000)}",
        "receive.buffer.bytes": str(given.required_integer("socket-buffer-size")),
        "max.partition.fetch.bytes": str(given.required_integer("fetch-size")),
        "auto.offset.reset": "latest" if given.has("from-latest") else "earliest",
        "check.crcs": "false",
    }


class _Count:
    """What was read since a moment, and how much of the time went into joining the group."""

    def __init__(self, started_ms: float) -> None:
        self.started_ms = started_ms
        self.records = 0
        self.size_bytes = 0
        self.joining_ms = 0.0

    @property
    def megabytes(self) -> float:
        return self.size_bytes / MEGABYTE


def _per_second(amount: float, elapsed_ms: float) -> float:
    return amount * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0


class _Reader:
    def __init__(
        self,
        connection: Connection,
        plan: _Plan,
        *,
        has_metrics: bool,
        clock_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self._plan = plan
        self._clock_ms = clock_ms
        self._errors = ClientErrors()
        self._stop = StopSignal()
        self._metrics = ClientStatistics() if has_metrics else None
        callbacks: dict[str, Any] = {"error_cb": self._errors}
        defaults = {**TOPIC_PATIENCE, "fetch.error.backoff.ms": "100", "allow.auto.create.topics": "true"}
        if self._metrics is not None:
            callbacks["stats_cb"] = self._metrics
            defaults.update(STATISTICS_SETTINGS)
        self._consumer = connection.consumer(defaults, **callbacks)

    def run(self) -> int:
        now_ms = self._clock_ms()
        self._total, self._window = _Count(now_ms), _Count(now_ms)
        self._joining_since_ms: float | None = now_ms
        self._consumer.subscribe(
            [self._plan.subscription], on_assign=self._on_assign, on_revoke=self._on_revoke
        )
        self._read_all()
        ended_ms = self._clock_ms()
        if self._metrics is not None:
            self._metrics.show(self._consumer.poll)
        self._consumer.close()
        if not self._plan.is_detailed:
            times = f"{self._date(self._total.started_ms)}, {self._date(ended_ms)}"
            print(f"{times}, {_columns(self._total, self._total, ended_ms)}")
        return self._stop.exit_code

    def _read_all(self) -> None:
        plan, total = self._plan, self._total
        last_record_ms = self._clock_ms()
        while total.records < plan.records and not self._stop.is_given():
            now_ms = self._clock_ms()
            if now_ms - last_record_ms > plan.timeout_ms:
                print(
                    f"WARNING: Exiting before consuming the expected number of records: timeout ({plan.timeout_ms} ms) "
                    "exceeded. You can use the --timeout option to increase the timeout.",
                    flush=True,
                )
                return
            if self._count(poll_batch(self._consumer, POLL_S, plan.records - total.records)):
                last_record_ms = self._clock_ms()
            self._errors.check()
            if plan.is_detailed:
                self._report()

    def _count(self, batch: list[Any]) -> int:
        """How many of them are records."""
        records = size_bytes = 0
        for message in batch:
            if message.error() is not None:
                self._errors(message.error())
                continue
            records += 1
            size_bytes += len(message.value() or b"") + len(message.key() or b"")
        for count in (self._total, self._window):
            count.records += records
            count.size_bytes += size_bytes
        return records

    def _report(self) -> None:
        now_ms = self._clock_ms()
        if now_ms - self._window.started_ms >= self._plan.interval_ms:
            print(
                f"{self._date(now_ms)}, {THREAD_ID}, {_columns(self._total, self._window, now_ms)}",
                flush=True,
            )
            self._window = _Count(now_ms)

    def _date(self, at_ms: float) -> str:
        return date_text(self._plan.date_format, datetime.fromtimestamp(at_ms / 1000))

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        if self._joining_since_ms is not None:
            joined_ms = self._clock_ms() - self._joining_since_ms
            self._total.joining_ms += joined_ms
            self._window.joining_ms += joined_ms
            self._joining_since_ms = None

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        self._joining_since_ms = self._clock_ms()


def _columns(total: _Count, timed: _Count, now_ms: float) -> str:
    """Amounts of the whole, rates of what is timed: the whole again, or an interval."""
    elapsed_ms = now_ms - timed.started_ms
    fetch_ms = elapsed_ms - timed.joining_ms
    return (
        f"{total.megabytes:.4f}, {_per_second(timed.megabytes, elapsed_ms):.4f}, "
        f"{total.records}, {_per_second(timed.records, elapsed_ms):.4f}, "
        f"{timed.joining_ms:.0f}, {fetch_ms:.0f}, "
        f"{_per_second(timed.megabytes, fetch_ms):.4f}, {_per_second(timed.records, fetch_ms):.4f}"
    )
