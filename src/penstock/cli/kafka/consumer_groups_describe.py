"""kafka-consumer-groups --describe: a group's offsets, members or state, in Kafka's columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from penstock.admin.groups.lag import Progress, progress
from penstock.admin.groups.model import REBALANCING_STATES, Description, Member, assignment_text
from penstock.admin.groups.requests import GroupRequests
from penstock.cli.kafka.consumer_groups_options import print_error
from penstock.cli.kafka.options import Options
from penstock.client.errors import Refused

MISSING = "-"
WIDTH, NARROW, ASSIGNMENT_WIDTH = 15, 10, 20


def describe(given: Options, groups: GroupRequests, group_ids: list[str]) -> None:
    described = groups.describe(group_ids)
    for found in described.values():
        if isinstance(found, Refused):
            raise found
    verbose = given.has("verbose")
    for group_id in sorted(described):
        group = described[group_id]
        assert isinstance(group, Description)
        if given.has("members"):
            _print_members(group, verbose=verbose)
        elif given.has("state"):
            _print_state(group, verbose=verbose)
        else:
            _print_offsets(group, progress(groups, group), verbose=verbose)


def _is_worth_showing(group: Description, rows: int) -> bool:
    if group.state == "Dead":
        print_error(f"Consumer group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        _tell(f"Consumer group '{group.group_id}' has no active members.")
    elif group.state in REBALANCING_STATES:
        _tell(f"Warning: Consumer group '{group.group_id}' is rebalancing.")
    return group.state != "Dead" and rows > 0


def _tell(sentence: str) -> None:
    sys.stdout.flush()
    print(f"\n{sentence}", file=sys.stderr, flush=True)


def _text(value: object | None) -> str:
    return MISSING if value is None else str(value)


def _print_offsets(group: Description, rows: list[Progress], *, verbose: bool) -> None:
    if not _is_worth_showing(group, len(rows)):
        return
    names = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST"]
    table = [_offset_cells(group, row) for row in rows]
    widths = [WIDTH, WIDTH, NARROW, WIDTH, WIDTH, WIDTH, WIDTH, WIDTH]
    for column in (0, 1, 6, 7):  # the others keep their width, whatever is in them
        widths[column] = max([WIDTH, *(len(cells[column]) for cells in table)])
    if verbose:
        names.insert(3, "LEADER-EPOCH")
        widths.insert(3, WIDTH)
        for cells, row in zip(table, rows, strict=True):
            cells.insert(3, _text(row.committed and row.committed.leader_epoch))
    print()
    print(_line(names, widths) + "CLIENT-ID")
    for cells, row in zip(table, rows, strict=True):
        print(_line(cells, widths) + (MISSING if row.member is None else row.member.client_id))


def _offset_cells(group: Description, row: Progress) -> list[str]:
    return [
        group.group_id,
        row.partition.topic,
        str(row.partition.partition),
        _text(row.committed and row.committed.offset),
        _text(row.end_offset),
        _text(row.lag),
        MISSING if row.member is None else row.member.member_id,
        MISSING if row.member is None else row.member.host,
    ]


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "".join(f"{cell:<{width}} " for cell, width in zip(cells, widths, strict=True))


def _print_members(group: Description, *, verbose: bool) -> None:
    _is_worth_showing(group, len(group.members))
    table = [_member_cells(group, member) for member in group.members]
    names = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    widths = [
        max([least, *(len(cells[column]) for cells in table)])
        for column, least in enumerate([WIDTH, WIDTH, len(names[2]), WIDTH, WIDTH, WIDTH])
    ]
    shown = [0, 1, 3, 4, 5]
    if any(member.instance_id for member in group.members):
        shown.insert(2, 2)
    extra_names, extra_table, extra_widths = _assignment_columns(group) if verbose else ([], [], [])
    print("\n" + _line([names[column] for column in shown], [widths[column] for column in shown]), end="")
    print(_tail(extra_names, extra_widths))
    for number, cells in enumerate(table):
        print(_line([cells[column] for column in shown], [widths[column] for column in shown]), end="")
        print(_tail(extra_table[number] if verbose else [], extra_widths))


def _member_cells(group: Description, member: Member) -> list[str]:
    return [
        group.group_id,
        member.member_id,
        member.instance_id,
        member.host,
        member.client_id,
        str(len(member.assignment)),
    ]


def _tail(cells: list[str], widths: list[int]) -> str:
    return " ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))


def _assignment_columns(group: Description) -> tuple[list[str], list[list[str]], list[int]]:
    names = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    table = [
        [
            _text(member.epoch),
            assignment_text(member.assignment),
            _text(group.assignment_epoch),
            assignment_text(member.target or []),
        ]
        for member in group.members
    ]
    widths = [
        WIDTH,
        max([ASSIGNMENT_WIDTH, *(len(cells[1]) for cells in table)]),
        WIDTH,
        max([ASSIGNMENT_WIDTH, *(len(cells[3]) for cells in table)]),
    ]
    if {True, False} <= {member.is_upgraded for member in group.members}:
        names.append("UPGRADED")
        widths.append(0)
        for cells, member in zip(table, group.members, strict=True):
            cells.append(MISSING if member.is_upgraded is None else str(member.is_upgraded).lower())
    return names, table, widths


def _print_state(group: Description, *, verbose: bool) -> None:
    if not _is_worth_showing(group, 1):
        return
    coordinator = f"{group.coordinator}  ({group.coordinator.node_id})"
    names = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    cells = [group.group_id, coordinator, group.assignor or MISSING, group.state]
    widths = [max(WIDTH, len(group.group_id)), max(25, len(coordinator)), 20, 20]
    if verbose:
        names += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells += [_text(group.group_epoch), _text(group.assignment_epoch)]
        widths += [WIDTH, 25]
    print("\n" + _line(names, widths) + "#MEMBERS")
    print(_line(cells, widths) + str(len(group.members)))
