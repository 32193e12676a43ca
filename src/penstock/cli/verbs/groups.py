"""penstock groups: list, describe, lag, reset, delete, delete-offsets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from penstock.cli.clients import Connection
from penstock.cli.failures import Refused, UserError
from penstock.cli.verbs.common_options import complete_topics, connected, output_option
from penstock.cli.verbs.groups_lag import lag
from penstock.cli.verbs.groups_options import complete_groups, found_groups

if TYPE_CHECKING:
    from penstock.cli.groups.lag import Progress
    from penstock.cli.groups.model import Description, Groups, Member
    from penstock.cli.groups.reset import Plan, Target
    from penstock.model.ids import TopicPartition

STATES = ["Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead"]


@click.group()
def groups() -> None:
    """List and describe groups, see their lag, send them elsewhere, delete them.

    \b
    Example:
      penstock groups lag --watch
      penstock groups reset billing --topic orders --to earliest
    """


groups.add_command(lag)


@groups.command("list")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES, case_sensitive=False), help="Only these."
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(["Classic", "Consumer"], case_sensitive=False),
    help="Only these.",
)
@output_option
@connected
def list_groups(connection: Connection, states: tuple[str, ...], types: tuple[str, ...], output: str) -> None:
    """List the groups.

    \b
    Example:
      penstock groups list --state Empty
    """
    from penstock.cli.groups.source import open_groups
    from penstock.cli.verbs.output import show_json, show_table

    with open_groups(connection) as known:
        listed = sorted(known.listing(states=states, types=types))
    if output == "json":
        show_json(
            [
                {"group": one.group_id, "type": one.type, "state": one.state, "protocol": one.protocol}
                for one in listed
            ]
        )
    elif listed:
        show_table(["group", "type", "state", "protocol"], listed)
    else:
        click.echo(
            "No groups yet. A consumer with a group makes one: penstock consume TOPIC --group NAME", err=True
        )


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_groups)
@output_option
@connected
def describe(connection: Connection, names: tuple[str, ...], output: str) -> None:
    """Show state, members and offsets of groups.

    \b
    Example:
      penstock groups describe billing
    """
    from penstock.cli.groups.lag import progress
    from penstock.cli.groups.source import open_groups
    from penstock.cli.verbs.output import show_json

    with open_groups(connection) as known:
        found = [(group, progress(known, group)) for group in found_groups(known, names)]
    if output == "json":
        show_json([_as_json(group, rows) for group, rows in found])
        return
    for group, rows in found:
        _show(group, rows)


def _as_json(group: Description, rows: list[Progress]) -> dict[str, object]:
    from penstock.cli.verbs.groups_lag import progress_as_json

    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator.node_id,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [_member_as_json(member) for member in group.members],
        "offsets": [progress_as_json(group.group_id, row) for row in rows],
    }


def _member_as_json(member: Member) -> dict[str, object]:
    return {
        "id": member.member_id,
        "instance": member.instance_id or None,
        "client": member.client_id,
        "host": member.host,
        "epoch": member.epoch,
        "assignment": [list(partition) for partition in sorted(member.assignment)],
        "target": None if member.target is None else [list(one) for one in sorted(member.target)],
    }


def _show(group: Description, rows: list[Progress]) -> None:
    from rich.markup import escape

    from penstock.cli.kafka.consumer_groups_describe import assignment_text
    from penstock.cli.verbs.groups_lag import progress_rows
    from penstock.cli.verbs.output import console, show_table

    assignor = f", {group.assignor}" if group.assignor else ""
    console().print(
        f"[bold]{escape(group.group_id)}[/bold]  {group.state}, {group.type.lower()}{assignor}, "
        f"coordinator {group.coordinator.node_id} at {group.coordinator}"
    )
    if group.members:
        show_table(
            ["member", "client", "host", "partitions"],
            [
                (member.member_id, member.client_id, member.host, assignment_text(member.assignment))
                for member in group.members
            ],
        )
    else:
        click.echo("No members.")
    if rows:
        show_table(
            ["topic", "partition", "committed", "end", "lag", "member"],
            [row[1:] for row in progress_rows(group.group_id, rows)],
        )


@groups.command()
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@click.option(
    "-t", "--topic", "topics", multiple=True, metavar="TOPIC[:N,N…]", shell_complete=complete_topics,
    help="A topic, or some of its partitions; may be repeated.",
)  # fmt: skip
@click.option("--all-topics", is_flag=True, help="All that the group has offsets of.")
@click.option("--to", metavar="WHERE", help="earliest, latest, current, or an offset.")
@click.option("--to-time", metavar="WHEN", help="A date, 10m (ago), or milliseconds since 1970.")
@click.option("--shift", type=int, metavar="N", help="Forwards, or backwards with a minus sign.")
@click.option("--dry-run", is_flag=True, help="Only show the new offsets.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
@connected
def reset(
    connection: Connection,
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    to: str | None,
    to_time: str | None,
    shift: int | None,
    dry_run: bool,
    yes: bool,
    output: str,
) -> None:
    """Send a group to other offsets. It must have no members; on a terminal it asks first.

    \b
    Example:
      penstock groups reset billing --topic orders --to earliest
      penstock groups reset billing --all-topics --to-time 2h --dry-run
    """
    from penstock.cli.groups.reset import plan
    from penstock.cli.groups.source import open_groups
    from penstock.cli.verbs.output import say

    if bool(topics) == all_topics:
        raise click.UsageError("Say which topics: --topic TOPIC, or --all-topics.")
    target = parse_target(to, to_time, shift)
    with open_groups(connection) as known:
        _ensure_inactive(known, name)
        partitions = _partitions(known, name, topics)
        planned = plan(known, name, partitions, target)
        before = known.committed(name)
        _show_plan(name, planned, {one: before[one].offset for one in before}, output)
        if dry_run or not planned.offsets:
            return
        if not yes and sys.stdin.isatty() and not click.confirm(f"Send {name} to these offsets?"):
            raise click.Abort
        known.commit(name, planned.offsets)
    say(f"{name} goes on at the new offsets")


def parse_target(to: str | None, to_time: str | None, shift: int | None) -> Target:
    from penstock.cli.groups.reset import Target

    if sum(value is not None for value in (to, to_time, shift)) != 1:
        raise click.UsageError("Say where to, in one way: --to, --to-time or --shift.")
    if shift is not None:
        return Target("shift", shift)
    if to_time is not None:
        import time

        from penstock.cli.verbs.consume import parse_time

        return Target("time", parse_time(to_time, now_s=time.time()))
    assert to is not None
    if to in ("earliest", "latest", "current"):
        return Target(to)
    if to.isascii() and to.isdigit():
        return Target("offset", int(to))
    raise click.UsageError(f"'{to}' is not earliest, latest, current or an offset.")


def _ensure_inactive(known: Groups, name: str) -> None:
    """A group that is not there yet may be given offsets, too."""
    from penstock.model.errors import ErrorCode

    found = known.describe([name])[name]
    if isinstance(found, Refused):
        if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise found
    elif not found.is_inactive:
        raise UserError(
            f"{name} has {len(found.members)} members and is {found.state}: stop them first, then reset it."
        )


def _partitions(known: Groups, name: str, words: tuple[str, ...]) -> list[TopicPartition]:
    from penstock.cli.groups.reset import parse_topic
    from penstock.model.ids import TopicPartition

    if not words:
        partitions = sorted(known.committed(name))
        if not partitions:
            raise UserError(f"{name} has no offsets yet: name the topics with --topic.")
        return partitions
    asked = [parse_topic(word) for word in words]
    there = known.partitions(topic for topic, _ in asked)
    chosen = []
    for topic, numbers in asked:
        if topic not in there:
            raise UserError(f"there is no topic '{topic}'.")
        for number in there[topic] if numbers is None else numbers:
            if number not in there[topic]:
                raise UserError(f"{topic} has no partition {number}: it has {len(there[topic])}")
            chosen.append(TopicPartition(topic, number))
    return sorted(set(chosen))


def _show_plan(name: str, planned: Plan, before: dict[TopicPartition, int], output: str) -> None:
    from penstock.cli.verbs.output import show_json, show_table

    for note in planned.notes:
        click.echo(note, err=True)
    if output == "json":
        show_json(
            [
                {
                    "group": name,
                    "topic": one.topic,
                    "partition": one.partition,
                    "before": before.get(one),
                    "offset": offset,
                }
                for one, offset in planned.offsets.items()
            ]
        )
        return
    rows = [
        (one.topic, one.partition, before.get(one, "–"), offset) for one, offset in planned.offsets.items()
    ]
    show_table(["topic", "partition", "before", "new"], rows)


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_groups)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@connected
def delete(connection: Connection, names: tuple[str, ...], yes: bool) -> None:
    """Delete groups that have no members, with their offsets. Asks first when it runs on a terminal.

    \b
    Example:
      penstock groups delete billing --yes
    """
    from penstock.cli.groups.source import open_groups
    from penstock.cli.verbs.output import say

    with open_groups(connection) as known:
        found_groups(known, names)
        question = f"Delete {', '.join(names)} with all offsets?"
        if not yes and sys.stdin.isatty() and not click.confirm(question):
            raise click.Abort
        outcome = known.delete(names)
    for name, error in outcome.items():
        if error is None:
            say(f"deleted {name}")
    for name, error in outcome.items():
        if error is not None:
            raise Refused(f"{name} was not deleted: {_what_to_do(error)}", code=error.code)


def _what_to_do(error: Refused) -> str:
    from penstock.model.errors import ErrorCode

    if error.code == ErrorCode.NON_EMPTY_GROUP:
        return "it has members. Stop them first."
    if error.code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        return "its members read that topic. Stop them first."
    return str(error)


@groups.command("delete-offsets")
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@click.option(
    "-t", "--topic", "topics", multiple=True, required=True, metavar="TOPIC[:N,N…]",
    shell_complete=complete_topics, help="A topic, or some of its partitions; may be repeated.",
)  # fmt: skip
@connected
def delete_offsets(connection: Connection, name: str, topics: tuple[str, ...]) -> None:
    """Make a group forget where it was in topics that it does not read.

    \b
    Example:
      penstock groups delete-offsets billing --topic orders
    """
    from penstock.cli.groups.source import open_groups
    from penstock.cli.verbs.output import say

    with open_groups(connection) as known:
        found_groups(known, (name,))
        deleted = known.delete_offsets(name, _partitions(known, name, topics))
    failed = deleted.error or next((one for one in deleted.partitions.values() if one is not None), None)
    if failed is not None:
        raise Refused(f"the offsets of {name} were not deleted: {_what_to_do(failed)}", code=failed.code)
    say(f"{name} has no offsets of {', '.join(topics)} any more")
