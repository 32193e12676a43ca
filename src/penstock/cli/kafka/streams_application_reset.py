"""kafka-streams-application-reset: sends a stopped application to the beginning of its topics, and deletes what it
keeps in the cluster."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from penstock.admin.groups.requests import GroupRequests
from penstock.admin.groups.reset import Plan, Target, parse_datetime_ms, parse_duration_ms, plan, within_logs
from penstock.admin.streams_applications import internal_topics, remove_members
from penstock.admin.topic_changes import delete_topics
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, Option, OptionError, Options, OptionTable
from penstock.client.errors import Refused, UserError
from penstock.client.property_files import read_text
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.java_order import in_hash_map_order, partitions_in_hash_map_order

if TYPE_CHECKING:
    from penstock.admin.groups.model import Description
    from penstock.client.cluster_client import ClusterClient

FORMS: Final = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "from-file",
    "shift-by",
)
NAMED_PARTITION: Final = re.compile(r" for topic partition \S+(?=\.)")
DRY_RUN: Final = (
    "----Dry run displays the actions which will be performed when running Streams Reset Tool----"
)
NOT_INTERNAL: Final = (
    "Invalid topic specified in the --internal-topics option. Ensure that the topics specified are all internal topics. "
    "Do a dry run without the --internal-topics option to see the list of all internal topics that can be deleted."
)

TABLE = OptionTable(
    "kafka-streams-application-reset",
    "Sends a Kafka Streams application, a penstock.streams app or a ksqlDB query that is stopped to the beginning of its input "
    "topics, and deletes its internal topics. Output topics stay, and so does what Java programs keep in their state.dir. "
    "Try it with --dry-run first: nothing brings deleted topics back.",
    [
        Option("application-id", "REQUIRED: the application's id, which is its group's, too.", "ID"),
        Option(
            "input-topics",
            "Topics that the application reads: their offsets become the earliest, or what one of --to-offset, --to-datetime, "
            "--by-duration, --to-earliest, --to-latest, --from-file and --shift-by says.",
            "TOPIC,…",
        ),
        Option(
            "intermediate-topics",
            "Deprecated: topics that it writes and reads; their offsets become the end.",
            "TOPIC,…",
        ),
        Option(
            "internal-topics", "Delete only these of its internal topics; without it, all of them.", "TOPIC,…"
        ),
        Option("to-offset", "To this offset, or the nearest there is.", "OFFSET"),
        Option(
            "to-datetime",
            "To the first record since then; in UTC where no zone is given.",
            "YYYY-MM-DDThh:mm:ss.sss",
        ),
        Option("by-duration", "To the first record since this long ago: PT1H, P7D.", "PnDTnHnMnS"),
        Option("to-earliest", "To the beginning of each partition (the default)."),
        Option("to-latest", "To the end of each partition."),
        Option("from-file", "As in a CSV file: topic,partition,offset.", "FILE"),
        Option("shift-by", "Forwards, or backwards with a minus sign, from where the group is.", "N"),
        Option("force", "Remove members that are still in the group. Stop the application first."),
        Option("dry-run", "Only tell what would be done."),
    ],
    examples=[
        "kafka-streams-application-reset --bootstrap-server localhost:9092 --application-id visits --input-topics "
        "clicks --dry-run",
        "kafka-streams-application-reset --bootstrap-server localhost:9092 --application-id visits --input-topics clicks "
        "--to-datetime 2026-11-01T00:00:00.000",
    ],
    client_options=(
        BOOTSTRAP._replace(
            doc="Where to connect: one or more brokers of the cluster.", default="localhost:9092"
        ),
        COMMAND_CONFIG,
    ),
    old_spellings={"config-file": "command-config"},
)


def execute(given: Options) -> int:
    given.modernise()
    _check(given)
    with cluster_client(given) as client:
        groups = GroupRequests(client)
        topics = {topic.name or "" for topic in client.metadata(None).topics if not topic.error_code}
        _without_members(given, client, groups)
        if given.has("dry-run"):
            print(DRY_RUN)
        try:
            failed = _reset(given, groups, topics)
            _delete_internal(given, client, topics)
        except Refused as error:
            tool.complain(f"ERROR: {error}")
            return 1
    return failed


def _check(given: Options) -> None:
    if not given.has("application-id"):
        raise OptionError("Missing required option(s) [application-id]")
    used = [form for form in FORMS if given.has(form)]
    for form in used:
        given.refuse_with(form, [other for other in used if other != form])


def _names(given: Options, option: str) -> list[str]:
    return list(dict.fromkeys(name for text in given.values(option) for name in text.split(",") if name))


def _without_members(given: Options, client: ClusterClient, groups: GroupRequests) -> None:
    name = given.value("application-id") or ""
    found = groups.describe([name])[name]
    if isinstance(found, Refused):
        if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise found
        return
    if not found.members:
        return
    if not given.has("force"):
        raise OptionError(
            f"ERROR: Consumer group '{name}' is still active and has following members: {_members(found)}. Make sure to stop all "
            "running application instances before running the reset tool. You can use option '--force' to remove active "
            "members from the group."
        )
    print("Force deleting all active members in the group: " + name)
    if not given.has("dry-run"):
        remove_members(client, name, [member.member_id for member in found.members])


def _members(found: Description) -> str:
    return ", ".join(
        f"{member.member_id} (client {member.client_id}, {member.host})" for member in found.members
    )


def _reset(given: Options, groups: GroupRequests, topics: set[str]) -> int:
    inputs, intermediate = _names(given, "input-topics"), _names(given, "intermediate-topics")
    if not inputs and not intermediate:
        print("No input or intermediate topics specified. Skipping seek.")
        return 0
    group = given.value("application-id") or ""
    if intermediate:
        print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    if inputs:
        print(f"Reset-offsets for input topics [{', '.join(inputs)}]")
    if intermediate:
        print(f"Seek-to-end for intermediate topics [{', '.join(intermediate)}]")
    missing = _tell_missing("input", inputs, topics) | _tell_missing("intermediate", intermediate, topics)
    partitions = groups.partitions(name for name in (*inputs, *intermediate) if name not in missing)

    def of(names: list[str]) -> list[TopicPartition]:
        return partitions_in_hash_map_order(
            TopicPartition(name, number) for name in names for number in partitions.get(name, ())
        )

    offsets: dict[TopicPartition, int] = {}
    if of(inputs):
        print(f"Following input topics offsets will be reset to (for consumer group {group})")
        planned = _planned(given, groups, group, of(inputs))
        for note in planned.notes:
            print(NAMED_PARTITION.sub("", note))
        for one in planned.fell_back:
            print(
                f"Partition {one.partition} from topic {one.topic} is empty, without a committed record. "
                "Falling back to latest known offset."
            )
        for one in of(inputs):
            if one in planned.offsets:
                print(f"Topic: {one.topic} Partition: {one.partition} Offset: {planned.offsets[one]}")
        offsets |= planned.offsets
    if of(intermediate):
        print(f"Following intermediate topics offsets will be reset to end (for consumer group {group})")
        for one in of(intermediate):
            print(f"Topic: {one.topic}")
        offsets |= plan(groups, group, of(intermediate), Target("latest")).offsets
    if offsets and not given.has("dry-run"):
        groups.commit(group, offsets)
    print("Done.")
    return 1 if missing else 0


def _tell_missing(kind: str, names: list[str], topics: set[str]) -> set[str]:
    missing = [name for name in names if name not in topics]
    if missing:
        print(f"Following {kind} topics are not found, skipping them")
        for name in missing:
            print(f"Topic: {name}")
    return set(missing)


def _planned(given: Options, groups: GroupRequests, group: str, partitions: list[TopicPartition]) -> Plan:
    path = given.value("from-file")
    if path is not None:
        wanted = _from_file(path)
        return within_logs(groups, {one: wanted[one] for one in partitions if one in wanted})
    since, ago = given.value("to-datetime"), given.value("by-duration")
    if given.has("to-latest"):
        target = Target("latest")
    elif given.has("to-offset"):
        target = Target("offset", given.integer("to-offset"))
    elif given.has("shift-by"):
        # A partition without an offset is shifted from where a consumer would begin.
        current = plan(groups, group, partitions, Target("current")).offsets
        by = given.integer("shift-by") or 0
        return within_logs(groups, {one: offset + by for one, offset in current.items()})
    elif since is not None:
        target = Target("time", parse_datetime_ms(since))
    elif ago is not None:
        target = Target("time", round(time.time() * 1000) - parse_duration_ms(ago))
    else:
        target = Target("earliest")
    return plan(groups, group, partitions, target)


def _from_file(path: str) -> dict[TopicPartition, int]:
    import csv

    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(read_text(path).splitlines()), start=1):
        if not any(value.strip() for value in row):
            continue
        try:
            topic, partition, offset = (value.strip() for value in row)
            found[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise UserError(
                f"line {number} of {path}, '{','.join(row)}', is not TOPIC,PARTITION,OFFSET"
            ) from None
    return found


def _delete_internal(given: Options, client: ClusterClient, topics: set[str]) -> None:
    internal = internal_topics(in_hash_map_order(topics), given.value("application-id") or "")
    named = _names(given, "internal-topics")
    if named:
        if not set(named) <= set(internal):
            raise OptionError(f"ERROR: {NOT_INTERNAL}")
        internal = named
    print(f"Deleting {'specified' if named else 'inferred'} internal topics [{', '.join(internal)}]")
    if internal and not given.has("dry-run"):
        for name, refused in delete_topics(client, internal).items():
            if refused is not None and refused.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UserError(f"the topic {name} was not deleted: {refused}")
    print("Done.")
