"""kafka-e2e-latency: how long a record takes from a producer to a consumer, one record at a time."""

from penstock.admin import Cluster
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.cli.kafka.stop_signal import StopSignal
from penstock.client.clients import Connection
from penstock.client.errors import NoSuchTopic
from penstock.load.round_trips import NULL_SIZE, RoundTripPlan, RoundTrips

REQUIRED = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
POSITIONAL_DEPRECATED = (
    "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use named "
    "arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, --record-size, --command-config"
)
NEW_TOPIC_PARTITIONS, NEW_TOPIC_REPLICATION = 1, 1

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


def execute(given: Options) -> int:
    _take_positions(given)
    given.require(*REQUIRED)
    plan = _plan(given)
    cluster = connection(given)
    partitions = _partitions(cluster, plan.topic)
    stop = StopSignal()
    RoundTrips(cluster, plan, partitions, say=tool.say, complain=tool.complain, is_over=stop.is_given).run()
    return stop.exit_code


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


def _plan(given: Options) -> RoundTripPlan:
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
    return RoundTripPlan(
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
