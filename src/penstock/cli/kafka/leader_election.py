"""kafka-leader-election: the preferred leaders back into their places, or any leader where there is none."""

from penstock.admin.elections import ELECTIONS, elect_leaders
from penstock.admin.json_documents import entries, field, parse_document
from penstock.admin.moves.files import duplicates
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError
from penstock.client.property_files import read_text
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.java_order import partitions_in_hash_map_order

CHOICES = ["topic", "all-topic-partitions", "path-to-json-file"]

TABLE = OptionTable(
    "kafka-leader-election",
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
    "preferred replicas and unclean replicas.",
    [
        Option(
            "election-type",
            "REQUIRED: preferred gives the leadership back to the first replica, where it is in sync; unclean takes "
            "any living replica where there is no leader, and may lose records.",
            "preferred|unclean",
        ),
        Option("topic", "The topic; --partition is needed with it.", "NAME"),
        Option("partition", "The partition of --topic.", "N"),
        Option("all-topic-partitions", "All partitions for which the election can be of use."),
        Option(
            "path-to-json-file",
            'The partitions: {"partitions": [{"topic": "orders", "partition": 0}]}',
            "FILE",
        ),
    ],
    old_spellings={"admin.config": "command-config"},
    examples=[
        "kafka-leader-election --bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions",
        "kafka-leader-election --bootstrap-server localhost:9092 --election-type unclean --topic orders --partition 0",
    ],
)


def execute(given: Options) -> int:
    given.modernise()
    _check(given)
    election = _election(given)
    partitions = _partitions(given)
    with cluster_client(given) as client:
        return _elect(client, election, partitions)


def _check(given: Options) -> None:
    missing = [name for name in ("bootstrap-server", "election-type") if not given.has(name)]
    if missing:
        raise OptionError(f"Missing required option(s): {', '.join(missing)}")
    if sum(given.has(name) for name in CHOICES) != 1:
        raise OptionError(f"One and only one of the following options is required: {', '.join(CHOICES)}")
    if given.has("topic") and not given.has("partition"):
        raise OptionError("Missing required option(s): partition")
    if given.has("partition") and not given.has("topic"):
        raise OptionError("Option partition is only allowed if topic is used")


def _election(given: Options) -> str:
    text = (given.value("election-type") or "").upper()
    if text not in ELECTIONS:
        raise OptionError(
            f"Cannot parse argument '{given.value('election-type')}' of option election-type (it is preferred or unclean)"
        )
    return text


def _partitions(given: Options) -> list[TopicPartition] | None:
    """None: all."""
    path = given.value("path-to-json-file")
    if path is not None:
        return parse_partitions(read_text(path))
    topic, partition = given.value("topic"), given.integer("partition")
    return None if topic is None or partition is None else [TopicPartition(topic, partition)]


def parse_partitions(text: str) -> list[TopicPartition]:
    document = parse_document(text)
    if "partitions" not in document:
        raise UserError('Replica election data is missing "partitions" field')
    partitions = [
        TopicPartition(field(entry, "topic", str), field(entry, "partition", int))
        for entry in entries(document, "partitions", of="topic and partition")
    ]
    twice = duplicates(partitions)
    if twice:
        raise UserError(
            f"Replica election data contains duplicate partitions: [{', '.join(map(str, twice))}]"
        )
    return partitions


def _elect(client: ClusterClient, election: str, partitions: list[TopicPartition] | None) -> int:
    results = elect_leaders(client, ELECTIONS[election], partitions)
    done = [one for one, error in results.items() if error is None]
    needless = [
        one for one, error in results.items() if error and error.code == ErrorCode.ELECTION_NOT_NEEDED
    ]
    failed = {one: error for one, error in results.items() if error and one not in set(needless)}
    if done:
        print(f"Successfully completed leader election ({election}) for partitions {_listed(done)}")
    if needless:
        print(f"Valid replica already elected for partitions {_listed(needless)}")
    for partition in partitions_in_hash_map_order(failed):
        error = failed[partition]
        print(
            f"Error completing leader election ({election}) for partition: {partition}: "
            f"{error.exception_name}: {error}"
        )
    if failed:
        tool.complain(f"{len(failed)} replica(s) could not be elected")
        return 1
    return 0


def _listed(partitions: list[TopicPartition]) -> str:
    return ", ".join(map(str, partitions_in_hash_map_order(partitions)))
