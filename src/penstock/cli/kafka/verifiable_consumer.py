"""kafka-verifiable-consumer: a member of a group that prints all that happens to it."""

from typing import Any, NamedTuple

from penstock.cli.kafka.address import client_properties
from penstock.cli.kafka.librdkafka import (
    MAX_RECORDS,
    POLL_S,
    TOPIC_PATIENCE,
    ClientErrors,
    StopSignal,
    poll_batch,
)
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable
from penstock.cli.kafka.tool import print_event, text_of
from penstock.client.clients import Connection, translated
from penstock.client.errors import Unreachable, UserError
from penstock.model.ids import TopicPartition

CLASSIC, CONSUMER = "classic", "consumer"
# librdkafka's word for Kafka's "none".
RESET_POLICIES = {"earliest": "earliest", "latest": "latest", "none": "error"}
ENDLESS = -1

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


class _Plan(NamedTuple):
    topic: str
    max_messages: int
    is_verbose: bool
    commits: bool


def execute(given: Options) -> int:
    given.require("topic", "group-id", "bootstrap-server")
    given.modernise()
    plan = _Plan(
        topic=given.value("topic") or "",
        max_messages=given.required_integer("max-messages"),
        is_verbose=given.has("verbose"),
        commits=not given.has("enable-autocommit"),
    )
    connection = Connection(given.value("bootstrap-server") or "", _properties(given))
    return _Member(connection, _defaults(given), plan).run()


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


class _Member:
    def __init__(self, connection: Connection, defaults: dict[str, str], plan: _Plan) -> None:
        self._plan = plan
        self._consumed = 0
        self._errors = ClientErrors()
        self._stop = StopSignal()
        self._consumer = connection.consumer(defaults, error_cb=self._errors)

    def run(self) -> int:
        print_event("startup_complete")
        self._consumer.subscribe(
            [self._plan.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_revoke,
        )
        try:
            self._consume()
        finally:
            if self._stop.is_given():
                print_event("shutdown_requested")
            self._consumer.close()
            print_event("shutdown_complete")
        if not self._stop.is_given():
            print_event("shutdown_requested")
        return self._stop.exit_code

    def _consume(self) -> None:
        plan = self._plan
        while not self._stop.is_given() and (
            plan.max_messages == ENDLESS or self._consumed < plan.max_messages
        ):
            wanted = MAX_RECORDS if plan.max_messages == ENDLESS else plan.max_messages - self._consumed
            records = []
            for message in poll_batch(self._consumer, POLL_S, wanted):
                if message.error() is None:
                    records.append(message)
                else:
                    self._on_error(message.error())
            self._errors.check()
            if records:
                self._tell(records)

    def _on_error(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise UserError(
                f"the group has no offset to begin with, and --reset-policy is none: {error.str()}"
            )
        self._errors(error)

    def _tell(self, records: list[Any]) -> None:
        self._consumed += len(records)
        offsets: dict[TopicPartition, list[int]] = {}
        for record in records:
            partition = TopicPartition(record.topic(), record.partition())
            offsets.setdefault(partition, []).append(record.offset())
            if self._plan.is_verbose:
                print_event(
                    "record_data",
                    key=text_of(record.key()),
                    value=text_of(record.value()),
                    topic=record.topic(),
                    partition=record.partition(),
                    offset=record.offset(),
                )
        print_event(
            "records_consumed",
            count=len(records),
            partitions=[
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "count": len(each),
                    "minOffset": min(each),
                    "maxOffset": max(each),
                }
                for partition, each in offsets.items()
            ],
        )
        if self._plan.commits:
            self._commit({partition: max(each) + 1 for partition, each in offsets.items()})

    def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        import confluent_kafka

        failure: dict[str, str] = {}
        try:
            self._consumer.commit(
                offsets=[
                    confluent_kafka.TopicPartition(one.topic, one.partition, offset)
                    for one, offset in offsets.items()
                ],
                asynchronous=False,
            )
        except confluent_kafka.KafkaException as error:
            cause = translated(error)
            if isinstance(cause, Unreachable):
                raise cause from None
            failure = {"error": str(cause)}
        told = [
            {"topic": one.topic, "partition": one.partition, "offset": offset}
            for one, offset in offsets.items()
        ]
        print_event("offsets_committed", offsets=told, **failure, success=not failure)

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        print_event("partitions_assigned", partitions=_listed(partitions))

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        print_event("partitions_revoked", partitions=_listed(partitions))


def _listed(partitions: list[Any]) -> list[dict[str, Any]]:
    return [{"topic": one.topic, "partition": one.partition} for one in partitions]
