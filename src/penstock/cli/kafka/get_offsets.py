"""kafka-get-offsets: the offset of each partition at a time: its end, its beginning, or what a timestamp leads to."""

import re
import sys
from collections.abc import Callable
from typing import Any

from penstock.cli.clients import Connection, admin_types, metadata, result
from penstock.cli.error_names import detail, full_exception_name
from penstock.cli.failures import Refused, UserError
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option,
    OptionError,
    Options,
    OptionTable,
    UsageError,
)
from penstock.cli.kafka.topic_filter import BadPattern, TopicFilter
from penstock.cli.reach import parse_addresses
from penstock.model.ids import TopicPartition

NAMED_TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
UNKNOWN_OFFSET = -1
UNSUPPORTED_VERSION = 35
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
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("broker-list", "The older spelling of --bootstrap-server.", "HOST:PORT", old=True),
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
    examples=["kafka-get-offsets --bootstrap-server localhost:9092 --topic orders --time earliest"],
)


def execute(given: Options) -> int:
    if given.has("broker-list") and not given.has("bootstrap-server"):
        given.add("bootstrap-server", given.value("broker-list"))
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
    cluster = connection(given)
    admin = cluster.admin()
    partitions = [
        TopicPartition(name, number)
        for name, topic in metadata(admin).topics.items()
        if TopicFilter(".*").allows(name, exclude_internal=given.has("exclude-internal-topics"))
        for number in topic.partitions
        if allows(TopicPartition(name, number))
    ]
    if not partitions:
        tool.complain("Error occurred: Could not match any topic-partitions with the specified filters")
        return 1
    for partition, offset in sorted(
        _offsets(admin, cluster, partitions, timestamp), key=lambda pair: str(pair[0])
    ):
        print(f"{partition.topic}:{partition.partition}:{offset}")
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


def _offsets(
    admin: Any, cluster: Connection, partitions: list[TopicPartition], timestamp: int
) -> list[tuple[TopicPartition, int]]:
    if timestamp < MAX_TIMESTAMP:
        # librdkafka has no word for the tiers of a log.
        from penstock.cli.kafka.tiered_offsets import list_offsets

        answers = list_offsets(cluster, partitions, timestamp)
    else:
        answers = _by_librdkafka(admin, partitions, timestamp)
    found = []
    for partition, code, offset in answers:
        if code:
            tool.complain(
                f"Skip getting offsets for topic-partition {partition} due to error: "
                f"{full_exception_name(code)}: {detail(code)}"
            )
        elif offset != UNKNOWN_OFFSET:
            found.append((partition, offset))
    return found


def _by_librdkafka(
    admin: Any, partitions: list[TopicPartition], timestamp: int
) -> list[tuple[TopicPartition, int, int]]:
    import confluent_kafka

    specs = admin_types().OffsetSpec
    if timestamp == LATEST:
        spec = specs.latest()
    elif timestamp == EARLIEST:
        spec = specs.earliest()
    elif timestamp == MAX_TIMESTAMP:
        spec = specs.max_timestamp()
    else:
        spec = specs.for_timestamp(timestamp)
    asked = {confluent_kafka.TopicPartition(one.topic, one.partition): spec for one in partitions}
    answers = []
    for partition, future in admin.list_offsets(asked).items():
        known = TopicPartition(partition.topic, partition.partition)
        try:
            answers.append((known, 0, result(future).offset))
        except Refused as error:
            answers.append((known, error.code, UNKNOWN_OFFSET))
    return answers


def main(argv: list[str]) -> int:
    return tool.run(TABLE, execute, argv)


if __name__ == "__main__":
    tool.leave(main(sys.argv[1:]))
