"""kafka-consumer-perf-test: reads so many records as fast as they come, and tells how fast that was."""

import random
from datetime import datetime

from penstock.admin.topic_filter import TopicFilter
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.cli.kafka.stop_signal import StopSignal
from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.load.reading import Reader, ReadPlan
from penstock.model.java_dates import date_text

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


def execute(given: Options) -> int:
    given.modernise(warning=DEPRECATED)
    given.require("bootstrap-server", "num-records")
    plan = _plan(given)
    try:
        date_text(plan.date_format, datetime.now())
    except ValueError as error:
        raise UserError(f"--date-format has {error}") from None
    stop = StopSignal()
    reader = Reader(
        Connection(given.value("bootstrap-server") or "", _properties(given)),
        plan,
        say=tool.say,
        complain=tool.complain,
        is_over=stop.is_given,
        has_metrics=given.has("print-metrics"),
    )
    if not given.has("hide-header"):
        times = "time, threadId" if plan.is_detailed else "start.time, end.time"
        print(f"{times}, {RATES_HEADER}, {FETCH_HEADER}", flush=True)
    reader.run()
    return stop.exit_code


def _plan(given: Options) -> ReadPlan:
    if given.has("topic") == given.has("include"):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    interval_ms = given.required_integer("reporting-interval")
    if interval_ms <= 0:
        raise OptionError("Reporting interval must be greater than 0.")
    topic, pattern = given.value("topic"), given.value("include") or ""
    if topic is None:
        TopicFilter(pattern)
    return ReadPlan(
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
