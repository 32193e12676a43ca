"""kafka-leader-election: the preferred leaders back into their places, or any leader where there is none."""

import sys

from penstock.cli.cluster_client import ClusterClient, refused
from penstock.cli.error_names import detail, full_exception_name
from penstock.cli.failures import Refused, UserError
from penstock.cli.json_documents import entries, field, parse_document
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.java_order import partitions_in_hash_map_order
from penstock.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, Option, OptionError, Options, OptionTable
from penstock.cli.moves.files import duplicates
from penstock.cli.property_files import read_text
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions

ELECTIONS = {"PREFERRED": 0, "UNCLEAN": 1}
CHOICES = ["topic", "all-topic-partitions", "path-to-json-file"]
TIMEOUT_S = 30.0

TABLE = OptionTable(
    "kafka-leader-election",
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
    "preferred replicas and unclean replicas.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("admin.config", "The older spelling of --command-config.", "FILE", old=True),
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
    examples=[
        "kafka-leader-election --bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions",
        "kafka-leader-election --bootstrap-server localhost:9092 --election-type unclean --topic orders --partition 0",
    ],
)


def execute(given: Options) -> int:
    _check(given)
    election = _election(given)
    partitions = _partitions(given)
    with ClusterClient(connection(given)) as client:
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


def elect_leaders(
    client: ClusterClient, election: int, partitions: list[TopicPartition] | None
) -> dict[TopicPartition, Refused | None]:
    """What came of it for each partition: None where it has a new leader."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions or ():
        topics.setdefault(topic, []).append(index)
    request = ElectLeadersRequest(
        election_type=election,
        topic_partitions=None
        if partitions is None
        else [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
        timeout_ms=int(TIMEOUT_S * 1000),
    )
    answer = client.ask_controller(
        request,
        ElectLeadersResponse,
        codes=lambda answered: [answered.error_code],
        timeout_s=2 * TIMEOUT_S,
    )
    if answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
        raise UserError("Timeout waiting for election results")
    if answer.error_code:
        raise refused(answer.error_code)
    return {
        TopicPartition(topic.topic, one.partition_id): Refused(
            detail(one.error_code, one.error_message),
            code=one.error_code,
            exception_name=full_exception_name(one.error_code),
        )
        if one.error_code
        else None
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


def _listed(partitions: list[TopicPartition]) -> str:
    return ", ".join(map(str, partitions_in_hash_map_order(partitions)))


def main(argv: list[str]) -> int:
    return tool.run(TABLE, execute, argv)


if __name__ == "__main__":
    tool.leave(main(sys.argv[1:]))
