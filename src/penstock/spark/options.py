"""The options of `format("penstock")`: those of Spark's Kafka source and sink, checked before anything is asked for.

An option's name is told in the words of Spark's documentation, whatever case it was written in.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Literal, NamedTuple, TypeVar

from pyspark.sql.types import StructType

from penstock.arrow.registry_schemas import WriteFormat
from penstock.arrow.zone_files import TIME_ZONES
from penstock.client.properties import CONSUMER_NAMES, PRODUCER_NAMES
from penstock.model.ids import TopicPartition
from penstock.spark.failures import BadOption
from penstock.spark.kafka_properties import PREFIX, checked
from penstock.spark.reading.offsets import (
    EARLIEST,
    LATEST,
    BadOffsets,
    Offsets,
    parse_assignment,
    parse_offsets,
)
from penstock.spark.registry_options import READ_NAMES as REGISTRY_READ_NAMES
from penstock.spark.registry_options import (
    VALUE,
    ReadFormat,
    is_registry_option,
    read_formats,
    write_formats,
)
from penstock.spark.registry_options import WRITE_NAMES as REGISTRY_WRITE_NAMES
from penstock.spark.value_schema import parse_value_schema

READ_NAMES = (
    "subscribe", "subscribePattern", "assign",
    "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition",
    "failOnDataLoss", "includeHeaders", "columns", "commit.group",
    "valueSchema", "valueMode", "valueTimeZone", "includeRawValue", *REGISTRY_READ_NAMES,
    # Taken so that a program for Spark's source runs unchanged; there is nothing here that they could change.
    "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs",
)  # fmt: skip
WRITE_NAMES = (
    "topic", "exactlyOnce", "transactionalIdPrefix", "includeHeaders", *REGISTRY_WRITE_NAMES,
    # Options of the query, which Spark hands to its sink as well.
    "checkpointLocation", "queryName", "asyncProgressTrackingEnabled", "asyncProgressTrackingCheckpointIntervalMs",
)  # fmt: skip
# How else one might name a topic; `path` is what load("orders") and save("orders") give.
TOPIC_WORDS = ("path", "subscribe", "topic", "topics")
SOURCE_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
ENDING_NAMES = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
DEFAULT_MAX_TRIGGER_DELAY_MS = 15 * 60 * 1000
T = TypeVar("T")
_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Subscription(NamedTuple):
    """Which partitions are read; one of the three."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


class Positions(NamedTuple):
    """Where reading starts or ends: the same for every partition, or for each its own.

    A number is an offset (or EARLIEST, LATEST), or a timestamp in milliseconds if `are_timestamps`.
    """

    everywhere: int | None
    by_partition: Offsets
    are_timestamps: bool
    option: str  # which option said so


class ValueOptions(NamedTuple):
    """Values are JSON, and the column `value` has these fields."""

    schema: StructType
    fails_fast: bool  # a value that is something else fails the query; otherwise it is null
    time_zone: str  # of timestamps that have none
    include_raw: bool  # a column `rawValue` with the bytes


class ReadOptions(NamedTuple):
    subscription: Subscription
    starting: Positions
    ending: Positions
    past_the_end: Literal["error", "latest"]  # when no record is as late as a starting timestamp
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int
    max_records_per_partition: int
    fail_on_data_loss: bool
    include_headers: bool
    columns: tuple[str, ...] | None  # None: all
    commit_group: str | None
    values: ValueOptions | None  # None: values are bytes, unless they are of a registry's format
    formats: tuple[ReadFormat, ...]  # of keys and values with the id of a schema
    properties: dict[str, str]  # of the Java consumer

    @property
    def is_read_committed(self) -> bool:
        return self.properties.get("isolation.level") == "read_committed"


class WriteOptions(NamedTuple):
    topic: str | None
    exactly_once: bool
    transactional_id_prefix: str | None
    properties: dict[str, str]  # of the Java producer
    formats: tuple[
        tuple[str, WriteFormat], ...
    ] = ()  # by column: keys and values that begin with the id of a schema


class _Given:
    """Options as they came, under the names that the documentation has for them."""

    def __init__(
        self, options: Mapping[str, str], names: Iterable[str], *, properties: Container[str]
    ) -> None:
        canonical = {name.lower(): name for name in names}
        self._values: dict[str, str] = {}
        for option, value in options.items():
            if option.lower().startswith(PREFIX) or is_registry_option(option):
                continue
            if option.lower() not in canonical:
                meant = _meant(option.lower(), canonical, properties)
                raise BadOption(option, "is unknown" + (f"; did you mean '{meant}'?" if meant else ""))
            self._values[canonical[option.lower()]] = value

    def text(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is not None and not value.strip():
            raise BadOption(name, "must not be empty")
        return None if value is None else value.strip()

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise BadOption(name, f"must be true or false, not '{value}'")
        return value.lower() == "true"

    def number(self, name: str, *, at_least: int = 1) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not re.fullmatch(r"\d{1,18}", value) or int(value) < at_least:
            raise BadOption(name, f"must be a whole number of at least {at_least}, not '{value}'")
        return int(value)

    def duration_ms(self, name: str, default: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        found = re.fullmatch(r"(\d+)\s*([a-z]*)", value.lower())
        if found is None or found[2] not in _UNITS_MS:
            raise BadOption(name, f"must be a time such as 15m or 30s, not '{value}'")
        return int(found[1]) * _UNITS_MS[found[2]]

    def offsets(self, name: str) -> Offsets | None:
        return self._parsed(name, parse_offsets)

    def assignment(self, name: str) -> list[TopicPartition] | None:
        return self._parsed(name, parse_assignment)

    def _parsed(self, name: str, parse: Callable[[str], T]) -> T | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            return parse(value)
        except BadOffsets as error:
            raise BadOption(name, f"{error}, not '{value}'") from None


def _meant(option: str, canonical: Mapping[str, str], properties: Container[str]) -> str | None:
    if option in TOPIC_WORDS:
        return next(name for name in TOPIC_WORDS if name in canonical)
    if option in properties:
        return f"{PREFIX}{option}"
    near = difflib.get_close_matches(option, canonical, n=1)
    return canonical[near[0]] if near else None


def read_options(options: Mapping[str, str], *, streaming: bool | None) -> ReadOptions:
    """`streaming` is None where it is not known yet; then only what is wrong for both is refused."""
    given = _Given(options, READ_NAMES, properties=CONSUMER_NAMES)
    if streaming:
        for name in ENDING_NAMES:
            if given.text(name) is not None:
                raise BadOption(name, "is for batch reads; a stream has no end")
    strategy = given.text("startingOffsetsByTimestampStrategy") or "error"
    if strategy not in ("error", "latest"):
        raise BadOption("startingOffsetsByTimestampStrategy", f"must be error or latest, not '{strategy}'")
    properties = checked({name.lower(): value for name, value in options.items()}, CONSUMER_NAMES)
    formats = read_formats(given, options)
    return ReadOptions(
        subscription=_subscription(given),
        starting=_starting(given, streaming),
        ending=_ending(given),
        past_the_end="latest" if strategy == "latest" else "error",
        max_offsets_per_trigger=given.number("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=given.number("minOffsetsPerTrigger"),
        max_trigger_delay_ms=given.duration_ms("maxTriggerDelay", DEFAULT_MAX_TRIGGER_DELAY_MS),
        min_partitions=given.number("minPartitions") or 0,
        max_records_per_partition=given.number("maxRecordsPerPartition") or 0,
        fail_on_data_loss=given.flag("failOnDataLoss", True),
        include_headers=given.flag("includeHeaders", False),
        columns=_columns(given),
        commit_group=given.text("commit.group"),
        values=_values(given, formats),
        formats=formats,
        properties=properties,
    )


def _values(given: _Given, formats: Iterable[ReadFormat]) -> ValueOptions | None:
    text = given.text("valueSchema")
    names = {each.name for each in formats}
    mode = (given.text("valueMode") or "PERMISSIVE").upper()
    if mode not in ("PERMISSIVE", "FAILFAST"):
        raise BadOption("valueMode", f"must be PERMISSIVE or FAILFAST, not '{mode}'")
    if text is None or VALUE in names:
        for name, is_meant in (
            ("valueMode", bool(names)),
            ("includeRawValue", VALUE in names),
            ("valueTimeZone", False),
        ):
            if not is_meant and given.text(name) is not None:
                raise BadOption(name, "has a meaning with 'valueSchema' only")
        return None
    time_zone = given.text("valueTimeZone") or "UTC"
    if TIME_ZONES.find(time_zone) is None:
        raise BadOption("valueTimeZone", f"must be like Europe/Lisbon or UTC, not '{time_zone}'")
    return ValueOptions(
        parse_value_schema(text), mode == "FAILFAST", time_zone, given.flag("includeRawValue", False)
    )


def _columns(given: _Given) -> tuple[str, ...] | None:
    """In the order that they always have. Spark tells no Python source which columns a query uses."""
    text = given.text("columns")
    if text is None:
        return None
    wanted = {name.strip().lower() for name in text.split(",") if name.strip()}
    known = {name.lower(): name for name in (*SOURCE_COLUMNS, "headers")}
    for name in sorted(wanted):
        if name not in known:
            raise BadOption("columns", f"has '{name}'; there are {', '.join(SOURCE_COLUMNS)}")
    if "headers" in wanted and not given.flag("includeHeaders", False):
        raise BadOption("columns", "has 'headers', which needs 'includeHeaders'")
    if not wanted:
        raise BadOption("columns", "must name one column at least")
    for name, option in (("value", "valueSchema"), ("value", "valueFormat"), ("key", "keyFormat")):
        if name not in wanted and given.text(option) is not None:
            raise BadOption(
                option, f"has a meaning with the column '{name}' only, which 'columns' leaves out"
            )
    return tuple(name for lower, name in known.items() if lower in wanted)


def write_options(options: Mapping[str, str]) -> WriteOptions:
    given = _Given(options, WRITE_NAMES, properties=PRODUCER_NAMES)
    given.flag("includeHeaders", True)
    properties = checked({name.lower(): value for name, value in options.items()}, PRODUCER_NAMES)
    exactly_once = given.flag("exactlyOnce", False)
    if exactly_once:
        if properties.get("enable.idempotence", "true").lower() != "true":
            raise BadOption("kafka.enable.idempotence", "must be true with 'exactlyOnce'")
        if properties.get("acks", "all") not in ("all", "-1"):
            raise BadOption("kafka.acks", "must be all with 'exactlyOnce'")
    prefix = given.text("transactionalIdPrefix")
    if prefix is not None and not exactly_once:
        raise BadOption("transactionalIdPrefix", "has a meaning with 'exactlyOnce' only")
    formats = tuple(write_formats(given, options).items())
    return WriteOptions(given.text("topic"), exactly_once, prefix, properties, formats)


def _subscription(given: _Given) -> Subscription:
    names = [name for name in ("subscribe", "subscribePattern", "assign") if given.text(name) is not None]
    if not names:
        raise BadOption("subscribe", "must name the topics (or give 'subscribePattern' or 'assign')")
    if len(names) > 1:
        raise BadOption(names[1], f"cannot be given together with '{names[0]}'")
    if (topics := given.text("subscribe")) is not None:
        listed = tuple(sorted({topic.strip() for topic in topics.split(",") if topic.strip()}))
        if not listed:
            raise BadOption("subscribe", "must name one topic at least")
        return Subscription(topics=listed)
    if (pattern := given.text("subscribePattern")) is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadOption("subscribePattern", f"is not a regular expression: {error}") from None
        return Subscription(pattern=pattern)
    return Subscription(partitions=tuple(given.assignment("assign") or ()))


def _starting(given: _Given, streaming: bool | None) -> Positions:
    found = _positions(given, "starting")
    if found is None:
        return Positions(LATEST if streaming else EARLIEST, {}, False, "startingOffsets")
    if streaming is False and (found.everywhere == LATEST or LATEST in found.by_partition.values()):
        raise BadOption(found.option, "cannot be latest in a batch read, which would be empty")
    return found


def _ending(given: _Given) -> Positions:
    found = _positions(given, "ending")
    if found is None:
        return Positions(LATEST, {}, False, "endingOffsets")
    if found.everywhere == EARLIEST or EARLIEST in found.by_partition.values():
        raise BadOption(found.option, "cannot be earliest, where nothing would be read")
    return found


def _positions(given: _Given, side: Literal["starting", "ending"]) -> Positions | None:
    """Of the three options for a side the one that goes first in Spark's order; None if none is given."""
    timestamp = given.number(f"{side}Timestamp", at_least=0)
    if timestamp is not None:
        return Positions(timestamp, {}, True, f"{side}Timestamp")
    name = f"{side}OffsetsByTimestamp"
    timestamps = given.offsets(name)
    if timestamps is not None:
        if min(timestamps.values(), default=0) < 0:
            raise BadOption(name, "must have timestamps of at least 0")
        return Positions(None, timestamps, True, name)
    name = f"{side}Offsets"
    text = given.text(name)
    if text is None:
        return None
    if text.lower() in ("earliest", "latest"):
        return Positions(EARLIEST if text.lower() == "earliest" else LATEST, {}, False, name)
    if not text.startswith("{"):
        raise BadOption(name, f'must be earliest, latest or like {{"topic": {{"0": 23}}}}, not \'{text}\'')
    offsets = given.offsets(name) or {}
    if min(offsets.values(), default=0) < EARLIEST:
        raise BadOption(name, "must have offsets of at least 0, or -1 for latest and -2 for earliest")
    return Positions(None, offsets, False, name)
