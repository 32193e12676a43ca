"""kafka-get-offsets: the offset of each partition at a time: its end, its beginning, or what a timestamp leads to."""

import re
from collections.abc import Callable

from penstock.admin.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, NO_OFFSET, positions
from penstock.admin.topic_filter import BadPattern, TopicFilter
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.client.errors import Refused, UserError
from penstock.client.reach import parse_addresses
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.ids import TopicPartition

NAMED_TIMES = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
PATIENCE_S = 10.0
TIMES_IN_WORDS = (
    "-1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered "
    "/ -6 or earliest-pending-upload"
)
RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")

Allows = Callable[[TopicPartition], bool]

TABLE = OptionTable(
    "kafka-get-offsets",
    "An interactive shell for getting topic-partition offsets.",
    [
        Option("topic", "A regular expression for the topics; all of them where it is left out.", "NAME"),
        Option("partitions", "The partitions to look at; all of them where it is left out.", "N,N,…"),
        Option(
            "topic-partitions",
            "Topics and partitions in one: topic:3, topic:0-3 (the second number is not included), topic:5-, topic:-3. "
            "Not together with --topic or --partitions.",
            "TOPIC:RANGE,…",
        ),
        Option("time", f"A timestamp in milliseconds, or {TIMES_IN_WORDS}.", "TIME", "latest"),
        Option("exclude-internal-topics", "Leave out Kafka's own topics."),
    ],
    aliases={"broker-list": "bootstrap-server"},
    examples=["kafka-get-offsets --bootstrap-server localhost:9092 --topic orders --time earliest"],
)


def execute(given: Options) -> int:
    given.require("bootstrap-server")
    validate_bootstrap(given.value("bootstrap-server"))
    try:
        if given.has("topic-partitions") and (given.has("topic") or given.has("partitions")):
            raise UserError("--topic-partitions cannot be used with --topic or --partitions")
        timestamp = parse_time(given.value("time") or "latest")
        allows = _partition_filter(given)
    except (UserError, BadPattern, OptionError) as error:
        tool.complain(f"Error occurred: {error}")
        return 1
    with cluster_client(given) as client:
        partitions = [
            TopicPartition(topic.name or "", one.partition_index)
            for topic in client.metadata().topics
            if TopicFilter(".*").allows(
                topic.name or "", exclude_internal=given.has("exclude-internal-topics")
            )
            for one in topic.partitions
            if allows(TopicPartition(topic.name or "", one.partition_index))
        ]
        if not partitions:
            tool.complain("Error occurred: Could not match any topic-partitions with the specified filters")
            return 1
        try:
            found = positions(client, partitions, timestamp, patience_s=PATIENCE_S)
        except UnsupportedByBroker as error:
            found = dict.fromkeys(partitions, error)
    for partition in sorted(found, key=str):
        position = found[partition]
        if isinstance(position, Refused):
            tool.complain(
                f"Skip getting offsets for topic-partition {partition} due to error: {position.exception_name}: {position}"
            )
        elif position.offset != NO_OFFSET:
            print(f"{partition.topic}:{partition.partition}:{position.offset}")
    return 0


def validate_bootstrap(text: str | None) -> None:
    if not text or not text.strip():
        raise UsageError("Error while validating the bootstrap address\n")
    try:
        parse_addresses(text)
    except UserError:
        raise UsageError("Please provide valid host:port like host1:9091,host2:9092\n") from None


def parse_time(text: str) -> int:
    if text in NAMED_TIMES:
        return NAMED_TIMES[text]
    try:
        return int(text)
    except ValueError:
        raise UserError(
            f"Malformed time argument {text}. Please use {TIMES_IN_WORDS}, or a specified long format timestamp"
        ) from None


def _partition_filter(given: Options) -> Allows:
    rules = given.value("topic-partitions")
    if rules is not None:
        allowed = [_rule(text) for text in rules.split(",")]
        return lambda partition: any(allows(partition) for allows in allowed)
    topics = TopicFilter(given.value("topic") or ".*")
    numbers = _partition_numbers(given.value("partitions"))
    return lambda one: topics.allows(one.topic) and (not numbers or one.partition in numbers)


def _partition_numbers(text: str | None) -> set[int]:
    if not text:
        return set()
    try:
        return {int(word) for word in text.split(",")}
    except ValueError:
        raise UserError(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None


def _rule(text: str) -> Allows:
    """`orders:0-3`: topics by pattern, partitions by number or range; the upper end is not included."""
    match = RULE.fullmatch(text)
    if match is None:
        raise UserError(f"Invalid rule specification: {text}")
    name, number, low, high = match.groups()
    topics = TopicFilter(name or ".*")
    if number:
        first, end = int(number), int(number) + 1
    else:
        first, end = int(low or 0), int(high) if high else 2**31
    return lambda one: topics.allows(one.topic) and first <= one.partition < end
