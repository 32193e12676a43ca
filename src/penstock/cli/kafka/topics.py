"""kafka-topics: create, list, describe, alter and delete topics."""

import re
import sys

from penstock.admin.topic_changes import (
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
)
from penstock.admin.topic_filter import chosen_topics
from penstock.admin.topics import topic_names
from penstock.cli.kafka.address import ZOOKEEPER, cluster_client, is_addressed
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused, UserError
from penstock.model.errors import ErrorCode

ACTIONS = ["alter", "create", "describe", "list", "delete"]
PARTITION_REPORTS = [
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
]
TO_KAFKA_CONFIGS = " (To alter topic configurations, the kafka-configs tool can be used.)"
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)
MAX_REPLICATION_FACTOR = 32767

TABLE = OptionTable(
    "kafka-topics",
    "This tool helps to create, delete, describe, or change a topic.",
    [
        Option("list", "Print the names of the topics, one per line, sorted."),
        Option("describe", "Print each topic with its settings, and each of its partitions."),
        Option("create", "Create a topic."),
        Option("alter", "Give a topic more partitions. Settings of a topic are changed with kafka-configs."),
        Option("delete", "Delete a topic and all that is in it."),
        Option("topic", "The topic. For every action but --create this may be a regular expression.", "NAME"),
        Option("topic-id", "The id of the topic to describe.", "ID"),
        Option(
            "partitions",
            "How many partitions the topic gets (create) or shall have from now on (alter). Records with a key may "
            "go to another partition than before once there are more.",
            "N",
        ),
        Option("replication-factor", "On how many brokers each partition is kept.", "N"),
        Option(
            "replica-assignment",
            "The brokers of each partition, by hand: commas between partitions, colons between replicas.",
            "ID:ID,ID:ID,…",
        ),
        Option("config", "A setting of the topic to create; may be given many times.", "NAME=VALUE"),
        Option("delete-config", "No longer supported.", "NAME", old=True),
        Option("if-exists", "With alter, delete and describe: a topic that is not there is no error."),
        Option("if-not-exists", "With create: a topic that is there already is no error."),
        Option("exclude-internal", "With list and describe: leave out Kafka's own topics."),
        Option(
            "topics-with-overrides", "Describe only topics with settings of their own, without partitions."
        ),
        Option("under-replicated-partitions", "Describe only partitions that miss a replica."),
        Option(
            "under-min-isr-partitions", "Describe only partitions with fewer in-sync replicas than demanded."
        ),
        Option(
            "at-min-isr-partitions",
            "Describe only partitions with just as many in-sync replicas as demanded.",
        ),
        Option("unavailable-partitions", "Describe only partitions whose leader is gone."),
        Option("partition-size-limit-per-response", "How many partitions to ask for at once.", "N", "2000"),
        ZOOKEEPER,
    ],
    examples=[
        "kafka-topics --bootstrap-server localhost:9092 --create --topic orders --partitions 3",
        "kafka-topics --bootstrap-server localhost:9092 --describe --topic orders",
    ],
)


def execute(given: Options) -> int:
    _check(given)
    try:
        _act(given)
    except (Refused, OptionError) as error:
        return _failed(str(error))
    except UserError as error:
        if given.value("command-config") and "cannot read" in str(error):
            raise
        return _failed(str(error))
    return 0


def _failed(reason: str) -> int:
    print(f"Error while executing topic command : {reason}", flush=True)
    return 1


def _check(given: Options) -> None:
    if sum(given.has(action) for action in ACTIONS) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    if given.has("delete-config"):
        print(
            "delete-config option is no longer supported and deprecated since version 4.0. "
            "The config will be fully removed in future releases.",
            file=sys.stderr,
        )
    if not is_addressed(given):
        raise OptionError("--bootstrap-server must be specified")
    if given.has("describe") and given.has("if-exists"):
        if not given.has("topic") and not given.has("topic-id"):
            raise UsageError("--topic or --topic-id is required to describe a topic")
        if given.has("topic") and given.has("topic-id"):
            print(
                "Only topic id will be used when both --topic and --topic-id are specified "
                "and topicId is not Uuid.ZERO_UUID"
            )
    if not given.has("list") and not given.has("describe"):
        given.require("topic")
    if given.has("alter"):
        if given.has("config"):
            raise UsageError(
                'Option combination "[[config], [bootstrap-server]]" can\'t be used with option "[alter]"'
                + TO_KAFKA_CONFIGS
            )
        given.require("partitions")
    _check_combinations(given)


def _check_combinations(given: Options) -> None:
    def only_with(name: str, *actions: str, never: tuple[str, ...] = ()) -> None:
        given.refuse_with(name, [*(action for action in ACTIONS if action not in actions), *never])

    only_with("config", "alter", "create")
    only_with("partitions", "alter", "create")
    only_with("replication-factor", "create")
    only_with("replica-assignment", "alter", "create")
    if given.has("create"):
        given.refuse_with("replica-assignment", ["partitions", "replication-factor"])
    for report in PARTITION_REPORTS:
        only_with(report, "describe", never=("topics-with-overrides",))
    only_with("topics-with-overrides", "describe", never=tuple(PARTITION_REPORTS))
    only_with("if-exists", "alter", "delete", "describe")
    only_with("if-not-exists", "create")
    only_with("exclude-internal", "list", "describe")


def _act(given: Options) -> None:
    if given.has("create"):
        _create(given)
        return
    with cluster_client(given) as client:
        if given.has("alter"):
            _alter(given, client)
        elif given.has("list"):
            print("\n".join(_chosen(client, given)))
        elif given.has("describe"):
            from penstock.cli.kafka.topics_describe import describe

            describe(given, client)
        else:
            topics = _existing(client, given)
            if topics:
                _check_done(delete_topics(client, topics))


def _check_done(outcome: dict[str, Refused | None]) -> None:
    for refusal in outcome.values():
        if refusal is not None:
            raise refusal


def _chosen(client: ClusterClient, given: Options) -> list[str]:
    names = topic_names(client)
    return chosen_topics(names, given.value("topic"), exclude_internal=given.has("exclude-internal"))


def _existing(client: ClusterClient, given: Options) -> list[str]:
    """The topics that are meant; an error when one is named and none is there, unless --if-exists."""
    topics = _chosen(client, given)
    ensure_exists(topics, given)
    return topics


def ensure_exists(topics: list[str], given: Options) -> None:
    if not topics and given.value("topic") and not given.has("if-exists"):
        raise UserError(f"Topic '{given.value('topic')}' does not exist as expected")


def _create(given: Options) -> None:
    name = given.value("topic") or ""
    partitions = given.integer("partitions")
    replication_factor = given.integer("replication-factor")
    assignment = parse_assignment(given.value("replica-assignment"))
    config = parse_topic_config(given.values("config"))
    if "." in name or "_" in name:
        print(COLLISION_WARNING, flush=True)
    if replication_factor is not None and not 1 <= replication_factor <= MAX_REPLICATION_FACTOR:
        raise UserError(f"The replication factor must be between 1 and {MAX_REPLICATION_FACTOR} inclusive")
    if partitions is not None and partitions < 1:
        raise UserError("The partitions must be greater than 0")
    with cluster_client(given) as client:
        (refusal,) = create_topics(
            client, [NewTopic(name, partitions, replication_factor, config, assignment)]
        ).values()
    if refusal is None:
        print(f"Created topic {name}.")
    elif refusal.code != ErrorCode.TOPIC_ALREADY_EXISTS or not given.has("if-not-exists"):
        raise refusal


def _alter(given: Options, client: ClusterClient) -> None:
    partitions = given.integer("partitions") or 0
    assignment = parse_assignment(given.value("replica-assignment"))
    topics = _existing(client, given)
    if not topics:
        return
    known = {topic.name: len(topic.partitions) for topic in client.metadata(topics).topics}
    wanted = [NewPartitions(topic, partitions, assignment[known[topic] :]) for topic in topics]
    _check_done(create_partitions(client, wanted))


def parse_topic_config(words: list[str]) -> dict[str, str]:
    config = {}
    for word in words:
        parts = re.split(r"\s*=\s*", word)
        if parts and parts[-1] == "":
            parts.pop()
        if len(parts) != 2:
            raise UserError(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        config[parts[0].strip()] = parts[1].strip()
    return config


def parse_assignment(text: str | None) -> list[list[int]]:
    """`1:2,2:1` → [[1, 2], [2, 1]]: the brokers of partition 0, then of partition 1."""
    if not text:
        return []
    assignment: list[list[int]] = []
    for number, part in enumerate(text.split(",")):
        try:
            brokers = [int(word.strip()) for word in part.split(":")]
        except ValueError as error:
            word = str(error).rpartition(": ")[2].strip("'")
            raise UserError(f'For input string: "{word}"') from None
        twice = [str(broker) for broker in dict.fromkeys(brokers) if brokers.count(broker) > 1]
        if twice:
            raise UserError(f"Partition replica lists may not contain duplicate entries: {','.join(twice)}")
        assignment.append(brokers)
        if len(brokers) != len(assignment[0]):
            shown = ", ".join(map(str, brokers))
            raise UserError(f"Partition {number} has different replication factor: [{shown}]")
    return assignment
