"""kafka-verifiable-consumer: a member of a group that prints all that happens to it."""

from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable
from penstock.cli.kafka.stop_signal import StopSignal
from penstock.cli.kafka.tool import complain, print_event
from penstock.client.clients import Connection
from penstock.load.clients import TOPIC_PATIENCE
from penstock.load.counting import ConsumerPlan, CountingConsumer

CLASSIC, CONSUMER = "classic", "consumer"
# librdkafka's word for Kafka's "none".
RESET_POLICIES = {"earliest": "earliest", "latest": "latest", "none": "error"}

TABLE = OptionTable(
    "kafka-verifiable-consumer",
    "Reads a topic as a member of a group, and prints what happens to it as lines of JSON.",
    [
        Option("topic", "REQUIRED: the topic to read.", "NAME"),
        Option("group-id", "REQUIRED: the consumer group.", "NAME"),
        Option("group-protocol", f"{CLASSIC} or {CONSUMER}.", "PROTOCOL", CLASSIC),
        Option("group-remote-assignor", f"The broker's assignor, with the protocol {CONSUMER}.", "NAME"),
        Option("group-instance-id", "A name that makes this a static member.", "ID"),
        Option("max-messages", "End after so many; -1 goes on until it is ended.", "N", "-1"),
        Option("session-timeout", f"The session's timeout, with the protocol {CLASSIC}.", "MS", "30000"),
        Option("verbose", "Print each record."),
        Option("enable-autocommit", "Commit offsets in the background, not after each poll."),
        Option(
            "reset-policy",
            f"Where to begin without an offset: {', '.join(RESET_POLICIES)}.",
            "POLICY",
            "earliest",
        ),
        Option(
            "assignment-strategy",
            f"The assignor's class, with the protocol {CLASSIC}.",
            "CLASS",
            "org.apache.kafka.clients.consumer.RangeAssignor",
        ),
    ],
    old_spellings={"consumer.config": "command-config"},
    examples=[
        "kafka-verifiable-consumer --bootstrap-server localhost:9092 --topic orders --group-id check --max-messages 100",
        "kafka-verifiable-consumer --bootstrap-server localhost:9092 --topic orders --group-id check "
        "--group-protocol consumer --verbose",
    ],
)


def execute(given: Options) -> int:
    given.require("topic", "group-id", "bootstrap-server")
    given.modernise()
    plan = ConsumerPlan(
        topic=given.value("topic") or "",
        max_messages=given.required_integer("max-messages"),
        is_verbose=given.has("verbose"),
        commits=not given.has("enable-autocommit"),
    )
    connection = Connection(given.value("bootstrap-server") or "", _properties(given))
    stop = StopSignal()
    CountingConsumer(
        connection, _defaults(given), plan, tell=print_event, complain=complain, is_over=stop.is_given
    ).run()
    return stop.exit_code


def _chosen(given: Options, name: str, choices: tuple[str, ...]) -> str:
    value = (given.value(name) or "").lower()
    if value not in choices:
        raise OptionError(
            f"argument --{name}: invalid choice: '{given.value(name)}' (choose from {{{','.join(choices)}}})"
        )
    return value


def _properties(given: Options) -> dict[str, str]:
    """What the options say wins over the file."""
    protocol = _chosen(given, "group-protocol", (CLASSIC, CONSUMER))
    policy = _chosen(given, "reset-policy", tuple(RESET_POLICIES))
    properties = {
        "client.id": "verifiable-consumer",
        **client_properties(given),
        "group.id": given.value("group-id") or "",
        "group.protocol": protocol,
        "auto.offset.reset": RESET_POLICIES[policy],
        "enable.auto.commit": str(given.has("enable-autocommit")).lower(),
    }
    if given.has("group-instance-id"):
        properties["group.instance.id"] = given.value("group-instance-id") or ""
    if protocol == CLASSIC:
        properties["session.timeout.ms"] = str(given.required_integer("session-timeout"))
        properties["partition.assignment.strategy"] = given.value("assignment-strategy") or ""
    return properties


def _defaults(given: Options) -> dict[str, str]:
    """Under librdkafka's names: the assignor means nothing to the tools that have no group protocol."""
    defaults = {**TOPIC_PATIENCE, "allow.auto.create.topics": "true", "fetch.error.backoff.ms": "100"}
    if given.has("group-remote-assignor") and (given.value("group-protocol") or "").lower() == CONSUMER:
        defaults["group.remote.assignor"] = given.value("group-remote-assignor") or ""
    return defaults
