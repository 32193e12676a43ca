"""kafka-consumer-groups --reset-offsets: plans as a table or as CSV, and commits them when told to.

The order of lines is that of Java's maps: scripts have learnt it.
"""

from __future__ import annotations

import time

from penstock.admin.groups.requests import GroupRequests
from penstock.admin.groups.reset import (
    NotThere,
    Plan,
    Target,
    parse_datetime_ms,
    parse_duration_ms,
    plan,
    within_logs,
)
from penstock.cli.kafka import tool
from penstock.cli.kafka.consumer_groups_options import FORMS, CommandFailed, parse_topics, print_error
from penstock.cli.kafka.options import Options, UsageError
from penstock.client.errors import Refused, UserError
from penstock.client.property_files import read_text
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.java_order import in_hash_map_order, partitions_in_hash_map_order

WIDTH = 15
# Beyond this length, and with a character before the minus sign in it, Kafka's CSV writer quotes a value.
LONGEST_UNQUOTED = 24
LEAST_UNQUOTED = "-"

Offsets = dict[TopicPartition, int]


def reset(given: Options, groups: GroupRequests, group_ids: list[str]) -> None:
    described = groups.describe(group_ids)
    plans: dict[str, Offsets] = {}
    for group_id in in_hash_map_order(group_ids):
        found = described[group_id]
        if isinstance(found, Refused):
            # A group that is not there yet may be given offsets before its first member comes.
            if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise found
        elif not found.is_inactive:
            print_error(
                f"Assignments can only be reset if the group '{group_id}' is inactive, "
                f"but the current state is {found.state}."
            )
            plans[group_id] = {}
            continue
        plans[group_id] = _reset_group(given, groups, group_id)
    if given.has("export"):
        print(_csv(plans, is_of_one_group=len(given.values("group")) == 1))
    else:
        _print_plans(plans)


def _reset_group(given: Options, groups: GroupRequests, group_id: str) -> Offsets:
    partitions = _partitions(given, groups, group_id)
    try:
        planned = _plan(given, groups, group_id, partitions)
    except NotThere as error:
        raise UsageError(str(error)) from None
    for note in planned.notes:
        tool.complain(f"WARN: {note}")
    for partition in partitions_in_hash_map_order(planned.fell_back):
        print(
            f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
            "Falling back to latest known offset."
        )
    if given.has("execute"):
        groups.commit(group_id, planned.offsets)
    return {one: planned.offsets[one] for one in partitions_in_hash_map_order(planned.offsets)}


def _partitions(given: Options, groups: GroupRequests, group_id: str) -> list[TopicPartition]:
    if given.has("all-topics"):
        return partitions_in_hash_map_order(groups.committed(group_id))
    if not given.has("topic"):
        if given.has("from-file"):
            return []
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    asked = parse_topics(given.values("topic"))
    known = groups.partitions(topic for topic, _ in asked)
    chosen: list[TopicPartition] = []
    missing: list[TopicPartition] = []
    for topic, _ in asked:
        if topic not in known:
            raise CommandFailed("This server does not host this topic-partition.")
    for topic, numbers in _in_order(asked):
        for number in known[topic] if numbers is None else numbers:
            (chosen if number in known[topic] else missing).append(TopicPartition(topic, number))
    if missing:
        raise CommandFailed(f'The partitions "{",".join(map(str, missing))}" do not exist')
    return list(dict.fromkeys(chosen))


def _in_order(asked: list[tuple[str, list[int] | None]]) -> list[tuple[str, list[int] | None]]:
    """Those with partitions first, the whole topics as a map of Java's lists them."""
    whole = in_hash_map_order(topic for topic, numbers in asked if numbers is None)
    return [one for one in asked if one[1] is not None] + [(topic, None) for topic in whole]


def _plan(given: Options, groups: GroupRequests, group_id: str, partitions: list[TopicPartition]) -> Plan:
    path = given.value("from-file")
    if path is not None:
        return _plan_from_file(given, groups, group_id, path)
    target = _target(given)
    try:
        return plan(groups, group_id, partitions, target)
    except NotThere:
        raise
    except UserError as error:
        raise UsageError(str(error)) from None


def _target(given: Options) -> Target:
    for form in ("earliest", "latest", "current"):
        if given.has(f"to-{form}"):
            return Target(form)
    if given.has("to-offset"):
        return Target("offset", given.integer("to-offset") or 0)
    if given.has("shift-by"):
        return Target("shift", given.integer("shift-by") or 0)
    since = given.value("to-datetime")
    duration = given.value("by-duration")
    try:
        if since is not None:
            return Target("time", parse_datetime_ms(since))
        if duration is not None:
            return Target("time", round(time.time() * 1000) - parse_duration_ms(duration))
    except UserError as error:
        prefix = "java.text.ParseException: " if since is not None else ""
        raise CommandFailed(f"{prefix}{error}") from None
    forms = ", ".join(f"[{form}]" for form in FORMS)
    raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{forms}]")


def _plan_from_file(given: Options, groups: GroupRequests, group_id: str, path: str) -> Plan:
    try:
        text = read_text(path)
    except UserError:
        raise CommandFailed(f"java.io.IOException: Unable to read file {path}") from None
    wanted = parse_plans(text, given.values("group")).get(group_id)
    if wanted is None:
        print_error(f"No reset plan for group {group_id} found")
        return Plan({}, [], [])
    return within_logs(groups, wanted)


def parse_plans(text: str, group_ids: list[str]) -> dict[str, Offsets]:
    """By group. Lines of three values belong to the one group that was named on the command line."""
    import csv

    plans: dict[str, Offsets] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), start=1):
        values = [value.strip() for value in row]
        if not any(values):
            continue
        if len(values) == 3 and len(group_ids) == 1:
            values.insert(0, group_ids[0])
        try:
            group_id, topic, partition, offset = values
            plans.setdefault(group_id, {})[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            wanted = "topic,partition,offset" if len(group_ids) == 1 else "group,topic,partition,offset"
            raise CommandFailed(f"line {number} of the file, '{','.join(row)}', is not {wanted}") from None
    return plans


def _print_plans(plans: dict[str, Offsets]) -> None:
    id_width = max([WIDTH, *map(len, plans)])
    topic_width = max([WIDTH, *(len(one.topic) for offsets in plans.values() for one in offsets)])
    if plans:
        print(f"\n{'GROUP':<{id_width}} {'TOPIC':<{topic_width}} {'PARTITION':<10} NEW-OFFSET", end="")
    for group_id, offsets in plans.items():
        for (topic, number), offset in offsets.items():
            print(f"\n{group_id:<{id_width}} {topic:<{topic_width}} {number:<10} {offset}", end="")
    print()


def _csv(plans: dict[str, Offsets], *, is_of_one_group: bool) -> str:
    lines = []
    for group_id, offsets in plans.items():
        for (topic, number), offset in offsets.items():
            values = [_csv_value(topic), str(number), str(offset)]
            if not is_of_one_group:
                values.insert(0, _csv_value(group_id))
            lines.append(",".join(values) + "\n")
    return "".join(lines)


def _csv_value(text: str) -> str:
    if len(text) > LONGEST_UNQUOTED or any(character < LEAST_UNQUOTED for character in text):
        return '"' + text.replace('"', '""') + '"'
    return text
