"""kafka-streams-application-reset: sends a stopped application to the beginning of its topics, and deletes what it
keeps in the cluster."""

from __future__ import annotations

import re
import time
from typing import Final

from penstock.admin.groups.reset import Plan, Target, parse_datetime_ms, parse_duration_ms
from penstock.admin.streams_applications import Application, offsets_in_csv
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, Option, OptionError, Options, OptionTable
from penstock.client.errors import Refused
from penstock.client.property_files import read_text
from penstock.model.ids import TopicPartition

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
        application = Application(client, given.value("application-id") or "")
        _without_members(given, application)
        if given.has("dry-run"):
            print(DRY_RUN)
        try:
            failed = _reset(given, application)
            _delete_internal(given, application)
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


def _without_members(given: Options, application: Application) -> None:
    members = application.members()
    if not members:
        return
    if not given.has("force"):
        shown = ", ".join(f"{one.member_id} (client {one.client_id}, {one.host})" for one in members)
        raise OptionError(
            f"ERROR: Consumer group '{application.id}' is still active and has following members: {shown}. Make sure to stop all "
            "running application instances before running the reset tool. You can use option '--force' to remove active "
            "members from the group."
        )
    print("Force deleting all active members in the group: " + application.id)
    if not given.has("dry-run"):
        application.remove_members(members)


def _reset(given: Options, application: Application) -> int:
    inputs, intermediate = _names(given, "input-topics"), _names(given, "intermediate-topics")
    if not inputs and not intermediate:
        print("No input or intermediate topics specified. Skipping seek.")
        return 0
    if intermediate:
        print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    if inputs:
        print(f"Reset-offsets for input topics [{', '.join(inputs)}]")
    if intermediate:
        print(f"Seek-to-end for intermediate topics [{', '.join(intermediate)}]")
    is_complete = [
        _all_there("input", inputs, application),
        _all_there("intermediate", intermediate, application),
    ]
    of_inputs, of_intermediate = application.partitions(inputs), application.partitions(intermediate)
    offsets: dict[TopicPartition, int] = {}
    if of_inputs:
        print(f"Following input topics offsets will be reset to (for consumer group {application.id})")
        offsets |= _told(_planned(given, application, of_inputs), of_inputs)
    if of_intermediate:
        print(
            f"Following intermediate topics offsets will be reset to end (for consumer group {application.id})"
        )
        for one in of_intermediate:
            print(f"Topic: {one.topic}")
        offsets |= application.planned(of_intermediate, Target("latest")).offsets
    if offsets and not given.has("dry-run"):
        application.commit(offsets)
    print("Done.")
    return 0 if all(is_complete) else 1


def _all_there(kind: str, names: list[str], application: Application) -> bool:
    missing = application.missing(names)
    if missing:
        print(f"Following {kind} topics are not found, skipping them")
        for name in missing:
            print(f"Topic: {name}")
    return not missing


def _told(planned: Plan, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    for note in planned.notes:
        print(NAMED_PARTITION.sub("", note))
    for one in planned.fell_back:
        print(
            f"Partition {one.partition} from topic {one.topic} is empty, without a committed record. "
            "Falling back to latest known offset."
        )
    for one in partitions:
        if one in planned.offsets:
            print(f"Topic: {one.topic} Partition: {one.partition} Offset: {planned.offsets[one]}")
    return planned.offsets


def _planned(given: Options, application: Application, partitions: list[TopicPartition]) -> Plan:
    path = given.value("from-file")
    if path is not None:
        return application.planned_at(partitions, offsets_in_csv(read_text(path), path))
    return application.planned(partitions, _target(given))


def _target(given: Options) -> Target:
    since, ago = given.value("to-datetime"), given.value("by-duration")
    if given.has("to-latest"):
        return Target("latest")
    if given.has("to-offset"):
        return Target("offset", given.integer("to-offset"))
    if given.has("shift-by"):
        return Target("shift", given.integer("shift-by"))
    if since is not None:
        return Target("time", parse_datetime_ms(since))
    if ago is not None:
        return Target("time", round(time.time() * 1000) - parse_duration_ms(ago))
    return Target("earliest")


def _delete_internal(given: Options, application: Application) -> None:
    internal = application.internal_topics()
    named = _names(given, "internal-topics")
    if named:
        if not set(named) <= set(internal):
            raise OptionError(f"ERROR: {NOT_INTERNAL}")
        internal = named
    print(f"Deleting {'specified' if named else 'inferred'} internal topics [{', '.join(internal)}]")
    if internal and not given.has("dry-run"):
        application.delete(internal)
    print("Done.")
