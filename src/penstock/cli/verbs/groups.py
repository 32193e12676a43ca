"""penstock groups: list, describe, lag, reset, delete, delete-offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.verbs.common_options import (
    administered,
    complete_topics,
    completion,
    output_option,
    yes_option,
)
from penstock.cli.verbs.groups_lag import COMMITTED, NO_GROUPS, lag
from penstock.cli.verbs.output import (
    Column,
    as_json,
    cells,
    confirm,
    console,
    say,
    show,
    show_rows,
    show_table,
)
from penstock.client.errors import Refused

if TYPE_CHECKING:
    from penstock.admin import Cluster, Target, TopicPartition
    from penstock.admin.groups.lag import GroupLag
    from penstock.admin.groups.model import Listing, Member

STATES = ["Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead"]
complete_groups = completion(lambda cluster: (one.group_id for one in cluster.groups.list()))
topics_option = click.option(
    "-t", "--topic", "topics", multiple=True, metavar="TOPIC[:N,N…]", shell_complete=complete_topics,
    help="A topic, or some of its partitions; may be repeated.",
)  # fmt: skip


@click.group()
def groups() -> None:
    """List and describe groups, see their lag, send them elsewhere, delete them.

    \b
    Example:
      penstock groups lag --watch
      penstock groups reset billing --topic orders --to earliest
    """


groups.add_command(lag)

LISTED: list[Column[Listing]] = [
    Column("group", lambda one: one.group_id),
    Column("type", lambda one: one.type),
    Column("state", lambda one: one.state),
    Column("protocol", lambda one: one.protocol),
]


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
@administered
def list_groups(cluster: Cluster, states: tuple[str, ...], types: tuple[str, ...], output: str) -> None:
    """List the groups.

    \b
    Example:
      penstock groups list --state Empty
    """
    show_rows(output, cluster.groups.list(states=states, types=types), LISTED, empty=NO_GROUPS)


MEMBERS: list[Column[Member]] = [
    Column("id", lambda one: one.member_id, "member"),
    Column("instance", lambda one: one.instance_id or None, None),
    Column("client", lambda one: one.client_id),
    Column("host", lambda one: one.host),
    Column("epoch", lambda one: one.epoch, None),
    Column("assignment", lambda one: sorted(one.assignment), "partitions", cell=lambda one: _assigned(one)),
    Column("target", lambda one: None if one.target is None else sorted(one.target), None),
]


def _assigned(member: Member) -> str:
    from penstock.admin.groups.model import assignment_text

    return assignment_text(member.assignment)


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_groups)
@output_option
@administered
def describe(cluster: Cluster, names: tuple[str, ...], output: str) -> None:
    """Show state, members and offsets of groups.

    \b
    Example:
      penstock groups describe billing
    """
    found = cluster.groups.lag(*names)
    show(output, lambda: [_as_json(one) for one in found], lambda: _draw(found))


def _as_json(found: GroupLag) -> dict[str, object]:
    group = found.group
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator.node_id,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [as_json(member, MEMBERS) for member in group.members],
        "offsets": [as_json((group.group_id, row), COMMITTED) for row in found.partitions],
    }


def _draw(found: list[GroupLag]) -> None:
    for one in found:
        _draw_one(one)


def _draw_one(found: GroupLag) -> None:
    from rich.markup import escape

    group = found.group
    assignor = f", {group.assignor}" if group.assignor else ""
    console().print(
        f"[bold]{escape(group.group_id)}[/bold]  {group.state}, {group.type.lower()}{assignor}, "
        f"coordinator {group.coordinator.node_id} at {group.coordinator}"
    )
    if group.members:
        show_table(*cells(group.members, MEMBERS))
    else:
        click.echo("No members.")
    if found.partitions:
        show_table(*cells([(group.group_id, row) for row in found.partitions], COMMITTED[1:]))


@groups.command()
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@topics_option
@click.option("--all-topics", is_flag=True, help="All that the group has offsets of.")
@click.option("--to", metavar="WHERE", help="earliest, latest, current, or an offset.")
@click.option("--to-time", metavar="WHEN", help="A date, 10m (ago), or milliseconds since 1970.")
@click.option("--shift", type=int, metavar="N", help="Forwards, or backwards with a minus sign.")
@click.option("--dry-run", is_flag=True, help="Only show the new offsets.")
@yes_option
@output_option
@administered
def reset(
    cluster: Cluster,
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
    if bool(topics) == all_topics:
        raise click.UsageError("Say which topics: --topic TOPIC, or --all-topics.")
    target = parse_target(to, to_time, shift)
    partitions = cluster.groups.partitions(name, topics)
    plan = cluster.groups.reset(name, partitions, target, dry_run=True)
    before = cluster.groups.committed(name)
    columns: list[Column[tuple[TopicPartition, int]]] = [
        Column("group", lambda row: name, None),
        Column("topic", lambda row: row[0].topic),
        Column("partition", lambda row: row[0].partition),
        Column("before", lambda row: before[row[0]].offset if row[0] in before else None),
        Column("offset", lambda row: row[1], "new"),
    ]
    for note in plan.notes:
        click.echo(note, err=True)
    show_rows(output, plan.offsets.items(), columns)
    if plan.offsets and not dry_run:
        confirm(f"Send {name} to these offsets?", yes=yes)
        cluster.groups.commit(name, plan.offsets)
        say(f"{name} goes on at the new offsets")


def parse_target(to: str | None, to_time: str | None, shift: int | None) -> Target:
    from penstock.admin import Target

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


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_groups)
@yes_option
@administered
def delete(cluster: Cluster, names: tuple[str, ...], yes: bool) -> None:
    """Delete groups that have no members, with their offsets. Asks first when it runs on a terminal.

    \b
    Example:
      penstock groups delete billing --yes
    """
    from penstock.admin.facets.groups import what_to_do

    cluster.groups.describe(*names)  # they are there
    confirm(f"Delete {', '.join(names)} with all offsets?", yes=yes)
    outcome = cluster.groups.delete_each(names)
    for name, error in outcome.items():
        if error is None:
            say(f"deleted {name}")
    for name, error in outcome.items():
        if error is not None:
            raise Refused(f"{name} was not deleted: {what_to_do(error)}", code=error.code)


@groups.command("delete-offsets")
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@topics_option
@administered
def delete_offsets(cluster: Cluster, name: str, topics: tuple[str, ...]) -> None:
    """Make a group forget where it was in topics that it does not read.

    \b
    Example:
      penstock groups delete-offsets billing --topic orders
    """
    if not topics:
        raise click.UsageError("Missing option '-t' / '--topic'.")
    cluster.groups.describe(name)  # it is there
    cluster.groups.delete_offsets(name, cluster.groups.partitions(name, topics))
    say(f"{name} has no offsets of {', '.join(topics)} any more")
