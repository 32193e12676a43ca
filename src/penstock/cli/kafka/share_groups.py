"""kafka-share-groups: the share groups of a cluster that has them, their members and from where on records are shared."""

from penstock.admin.groups.model import assignment_text
from penstock.admin.groups.requests import GroupRequests
from penstock.admin.groups.share_groups import (
    STATES,
    TYPE,
    ShareGroup,
    check_share_groups,
    share_groups,
    start_offsets,
)
from penstock.cli.kafka.groups_of_a_kind import (
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

TABLE = table("kafka-share-groups", "share", view="from where on records are shared in each partition")


def execute(given: Options) -> int:
    return run(given, Kind("share", TYPE, STATES, check_share_groups, _describe, failure_code=0))


def _describe(given: Options, groups: GroupRequests, group_ids: list[str]) -> None:
    verbose = given.has("verbose")
    for group in share_groups(groups, group_ids):
        if given.has("members"):
            _print_members(group, verbose=verbose)
        elif given.has("state"):
            _print_state(group, verbose=verbose)
        else:
            _print_offsets(groups, group, verbose=verbose)


def _is_worth_showing(group: ShareGroup, rows: int) -> bool:
    if group.state == "Dead":
        print_error(f"Share group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        tell(f"Share group '{group.group_id}' has no active members.")
    return group.state != "Dead" and rows > 0


def _print_offsets(groups: GroupRequests, group: ShareGroup, *, verbose: bool) -> None:
    known = start_offsets(groups, group.group_id)
    if not known:
        print(f"\nShare group '{group.group_id}' has no offset information.")
        return
    columns = [("GROUP", WIDTH), ("TOPIC", WIDTH), ("PARTITION", 10), ("START-OFFSET", 13), ("LAG", 0)]
    rows: list[list[object]] = [
        [group.group_id, one.topic, one.partition, start.offset, start.lag] for one, start in known.items()
    ]
    if verbose:
        columns.insert(3, ("LEADER-EPOCH", 13))
        for row, start in zip(rows, known.values(), strict=True):
            row.insert(3, start.leader_epoch)
    print()
    print_columns(columns, rows)


def _print_members(group: ShareGroup, *, verbose: bool) -> None:
    if not _is_worth_showing(group, len(group.members)):
        return
    columns = [
        ("GROUP", WIDTH), ("CONSUMER-ID", WIDTH), ("HOST", WIDTH), ("CLIENT-ID", WIDTH), ("#PARTITIONS", 12),
        *([("MEMBER-EPOCH", 13)] if verbose else []), ("ASSIGNMENT", 0),
    ]  # fmt: skip
    rows = [
        [
            group.group_id, one.member_id, one.host, one.client_id, len(one.assignment),
            *([one.epoch] if verbose else []), assignment_text(one.assignment) if one.assignment else "",
        ]
        for one in group.members
    ]  # fmt: skip
    print()
    print_columns(columns, rows)


def _print_state(group: ShareGroup, *, verbose: bool) -> None:
    if not _is_worth_showing(group, 1):
        return
    where = f"{group.coordinator}  ({group.coordinator.node_id})"
    columns = [("GROUP", WIDTH), ("COORDINATOR (ID)", WIDE), ("STATE", WIDTH)]
    row: list[object] = [group.group_id, where, group.state]
    if verbose:
        columns += [("GROUP-EPOCH", 12), ("ASSIGNMENT-EPOCH", 17)]
        row += [group.group_epoch, group.assignment_epoch]
    print()
    print_columns([*columns, ("#MEMBERS", 0)], [[*row, len(group.members)]])
