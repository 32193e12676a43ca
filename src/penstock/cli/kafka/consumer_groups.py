"""kafka-consumer-groups: list, describe and delete groups of consumers, and send them to other offsets.

The exit code is 0 even where the cluster refused something, as with Kafka's own tool: the text tells. It is 1 for a
wrong command line and when no broker answers.
"""

from collections.abc import Iterable

from penstock.admin.groups.model import STATES, TYPES
from penstock.admin.groups.requests import GroupRequests, open_groups
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.consumer_groups_options import TABLE as TABLE
from penstock.cli.kafka.consumer_groups_options import CommandFailed, check, named, parse_topics, print_error
from penstock.cli.kafka.options import OptionError, Options, UsageError
from penstock.client.clients import Connection
from penstock.client.errors import Refused
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.java_order import in_hash_map_order
from penstock.model.patterns import full_match

ID_WIDTH, TOPIC_WIDTH, STATE_WIDTH = 15, 15, 20
WHOLE_REQUEST_CODES = frozenset(
    {
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
    }
)
PARTITION_CODES = frozenset(
    {
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
# RE2 names what is wrong, and then shows where; Kafka's RE2/J has its own names, and this tool prints those.
REGEX_COMPLAINTS = {
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid escape sequence": "invalid escape sequence",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid character class range": "invalid character class range",
    "invalid named capture group": "invalid named capture",
}


def execute(given: Options) -> int:
    check(given)
    pattern = given.value("validate-regex")
    if pattern is not None:
        _validate_regex(pattern)
        return 0
    timeout_ms = given.integer("timeout") or 0
    where = connection(given)
    states = _chosen(given, "state", STATES, "state")
    types = _chosen(given, "type", TYPES, "types")
    try:
        _act(given, where, timeout_ms / 1000, states=states, types=types)
    except (Refused, CommandFailed, OptionError) as error:
        reason = named(error) if isinstance(error, Refused) else str(error)
        print_error(f"Executing consumer group command failed due to {reason}")
        if isinstance(error, Refused) and error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            address = given.value("bootstrap-server")
            tool.complain(
                f"These groups are there: kafka-consumer-groups --bootstrap-server {address} --list"
            )
    return 0


def _act(given: Options, where: Connection, timeout_s: float, *, states: list[str], types: list[str]) -> None:
    with open_groups(where, timeout_s=timeout_s) as groups:
        if given.has("list"):
            _list(given, groups, states=states, types=types)
        elif given.has("delete"):
            _delete(groups, chosen_groups(given, groups))
        elif given.has("delete-offsets"):
            _delete_offsets(groups, given.value("group") or "", given.values("topic"))
        elif given.has("describe"):
            from penstock.cli.kafka.consumer_groups_describe import describe

            describe(given, groups, chosen_groups(given, groups))
        else:
            from penstock.cli.kafka.consumer_groups_reset import reset

            reset(given, groups, chosen_groups(given, groups))


def chosen_groups(given: Options, groups: GroupRequests) -> list[str]:
    if given.has("all-groups"):
        return group_ids(groups)
    return list(dict.fromkeys(given.values("group")))


def group_ids(groups: GroupRequests) -> list[str]:
    return in_hash_map_order(one.group_id for one in groups.listing() if one.is_of_consumers)


def _chosen(given: Options, name: str, known: tuple[str, ...], what: str) -> list[str]:
    """The values of --state or --type as the broker writes them; letters may be of any case."""
    text = given.value(name) if given.has("list") else None
    if not text:
        return []
    spelled = {value.lower(): value for value in known}
    chosen = [spelled.get(word.strip().lower()) for word in text.split(",")]
    if None in chosen:
        raise UsageError(
            f"Invalid {what} list '{text}'. Valid {what if what == 'types' else 'states'} are: {', '.join(known)}"
        )
    return [value for value in chosen if value is not None]


def _list(given: Options, groups: GroupRequests, *, states: list[str], types: list[str]) -> None:
    columns = [name for name in ("type", "state") if given.has(name)]
    if not columns:
        for group_id in group_ids(groups):
            print(group_id)
        return
    found = {one.group_id: one for one in groups.listing(states=states, types=types) if one.is_of_consumers}
    id_width = max([ID_WIDTH, *map(len, found)]) + 10
    print(f"{'GROUP':<{id_width}}" + "".join(f" {name.upper():<{STATE_WIDTH}}" for name in columns))
    for group_id in in_hash_map_order(found):
        values = [getattr(found[group_id], name) or "Unknown" for name in columns]
        print(f"{group_id:<{id_width}}" + "".join(f" {value:<{STATE_WIDTH}}" for value in values))


def _delete(groups: GroupRequests, chosen: list[str]) -> None:
    outcome = groups.delete(chosen)
    deleted = in_hash_map_order(group_id for group_id in outcome if outcome[group_id] is None)
    failed = in_hash_map_order(group_id for group_id in outcome if outcome[group_id] is not None)
    if not failed:
        print(f"Deletion of requested consumer groups ({_quoted(deleted)}) was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for group_id in failed:
        error = outcome[group_id]
        assert error is not None
        print(f"* Group '{group_id}' could not be deleted due to: {named(error)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {_quoted(deleted)}")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _delete_offsets(groups: GroupRequests, group_id: str, words: list[str]) -> None:
    asked = parse_topics(words)
    known = groups.partitions(topic for topic, numbers in asked if numbers is None)
    statuses: dict[tuple[str, int], Refused | None] = {}
    partitions = []
    for topic, numbers in asked:
        if numbers is None and topic not in known:
            from penstock.client.error_names import refused

            statuses[topic, -1] = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            found = known[topic] if numbers is None else numbers
            partitions += [TopicPartition(topic, number) for number in found]
    error, by_partition = groups.delete_offsets(group_id, dict.fromkeys(partitions))
    statuses |= {(one.topic, one.partition): status for one, status in by_partition.items()}
    failed = error or next((one for one in by_partition.values() if one is not None), None)
    if failed is None:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
    elif failed.code in WHOLE_REQUEST_CODES:
        print_error(str(failed))
    elif failed.code in PARTITION_CODES:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {ErrorCode(failed.code).name}")
    width = max([TOPIC_WIDTH, *(len(topic) for topic, _ in statuses)])
    print(f"\n{'TOPIC':<{width}} {'PARTITION':<10} {'STATUS':<15}")
    for (topic, number), refusal in sorted(statuses.items(), key=lambda item: f"{item[0][0]}{item[0][1]}"):
        status = "Successful" if refusal is None else f"Error: {named(refusal)}"
        print(f"{topic:<{width}} {number if number >= 0 else '-':<10} {status:<15}")


def regex_complaint(pattern: str) -> str | None:
    """What is wrong with a regular expression, in the words of Kafka's tool; None when nothing is."""
    try:
        full_match(pattern)
    except ApiError as error:
        reason = error.detail or ""
        return next((kafkas for ours, kafkas in REGEX_COMPLAINTS.items() if reason.startswith(ours)), reason)
    return None


def _validate_regex(pattern: str) -> None:
    wrong = regex_complaint(pattern)
    shown = pattern.encode(errors="replace").decode()
    print(f"The regular expression `{shown}` is {'valid' if wrong is None else f'invalid: {wrong}'}.")
