"""kafka-streams-groups: the streams groups of a cluster that has them, their members with their tasks, and their lag."""

from penstock.admin.groups.requests import GroupRequests
from penstock.admin.groups.streams_groups import (
    STATES,
    TYPE,
    StreamsGroup,
    StreamsMember,
    Tasks,
    check_streams_groups,
    source_offsets,
    streams_groups,
)
from penstock.cli.kafka.groups_of_a_kind import (
    NARROW,
    WIDE,
    WIDTH,
    Kind,
    print_columns,
    print_error,
    run,
    table,
    tell,
)
from penstock.cli.kafka.options import Options

TABLE = table("kafka-streams-groups", "streams", view="how far the group is in each partition that it reads")


def execute(given: Options) -> int:
    return run(given, Kind("streams", TYPE, STATES, check_streams_groups, _describe, failure_code=1))


def _describe(given: Options, groups: GroupRequests, group_ids: list[str]) -> None:
    verbose = given.has("verbose")
    for group in streams_groups(groups, group_ids):
        if given.has("members"):
            _print_members(group, verbose=verbose)
        elif given.has("state"):
            _print_state(group, verbose=verbose)
        else:
            _print_offsets(groups, group, verbose=verbose)


def _print_offsets(groups: GroupRequests, group: StreamsGroup, *, verbose: bool) -> None:
    known = source_offsets(groups, group)
    if not known:
        return
    columns = [("GROUP", WIDTH), ("TOPIC", WIDTH), ("PARTITION", NARROW)]
    rows: list[list[object]] = [[group.group_id, one.topic, one.partition] for one in known]
    if not verbose:
        columns.append(("OFFSET-LAG", 0))
    else:
        columns += [
            (name, WIDTH) for name in ("CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG")
        ]
    for row, offset in zip(rows, known.values(), strict=True):
        row += [offset.committed, offset.leader_epoch, offset.end_offset] if verbose else []
        row.append(offset.lag)
    print_columns(columns, rows)


def _print_members(group: StreamsGroup, *, verbose: bool) -> None:
    if not group.members:
        return
    columns = [
        ("GROUP", WIDTH),
        ("MEMBER", WIDTH),
        ("PROCESS", WIDTH),
        ("CLIENT-ID", WIDTH),
        ("ASSIGNMENTS", 0),
    ]
    rows: list[list[object]] = [
        [group.group_id, one.member_id, one.process_id, one.client_id, _assignments(one, verbose=verbose)]
        for one in group.members
    ]
    if verbose:
        columns[1:2] = [
            ("TARGET-ASSIGNMENT-EPOCH", WIDE), ("TOPOLOGY-EPOCH", 14), ("MEMBER", WIDTH),
            ("MEMBER-PROTOCOL", WIDTH), ("MEMBER-EPOCH", WIDTH),
        ]  # fmt: skip
        for row, one in zip(rows, group.members, strict=True):
            protocol = "classic" if one.is_classic else "streams"
            row[1:2] = [group.assignment_epoch, one.topology_epoch, one.member_id, protocol, one.epoch]
    print_columns(columns, rows)


def _assignments(member: StreamsMember, *, verbose: bool) -> str:
    said = _tasks(member.assigned, "")
    return said + _tasks(member.target, "TARGET-") if verbose else said


def _tasks(tasks: Tasks, prefix: str) -> str:
    """`ACTIVE: 0:[0,1]; 1:[0]; STANDBY: 0:[2]; `, as Kafka's tool has it."""
    return "".join(
        f"{prefix}{name.upper()}: "
        + "".join(f"{part}:[{','.join(map(str, numbers))}]; " for part, numbers in held.items())
        for name, held in zip(Tasks._fields, tasks, strict=True)
        if held
    )


def _print_state(group: StreamsGroup, *, verbose: bool) -> None:
    name = f"Streams group '{group.group_id}'"
    if group.state == "Dead":
        print_error(f"{name} does not exist.")
        return
    if group.state == "Empty":
        print_error(f"{name} has no active members.")
    elif group.state == "NotReady":
        print_error(f"{name} is not ready.")
    elif group.state in ("Assigning", "Reconciling"):
        tell(f"Warning: {name} is rebalancing.")
    columns = [("GROUP", WIDTH), ("COORDINATOR (ID)", WIDE), ("STATE", WIDE)]
    row: list[object] = [group.group_id, f"{group.coordinator} ({group.coordinator.node_id})", group.state]
    if verbose:
        columns += [("GROUP-EPOCH", WIDTH), ("TARGET-ASSIGNMENT-EPOCH", WIDE)]
        row += [group.group_epoch, group.assignment_epoch]
    print_columns([*columns, ("#MEMBERS", 0)], [[*row, len(group.members)]])
