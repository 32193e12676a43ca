"""penstock topics: list, describe, create, alter, delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.clients import Connection, admin_types, metadata, result
from penstock.cli.failures import Refused, UserError
from penstock.cli.verbs.common_options import complete_topics, connected, output_option, pairs

if TYPE_CHECKING:
    from penstock.cli.kafka.topics_describe import PartitionDescription
    from penstock.cli.partition_offsets import Span

TOPIC_ALREADY_EXISTS = 36
OPERATION_TIMEOUT_S = 30.0


@click.group()
def topics() -> None:
    """List, describe, create, alter and delete topics.

    \b
    Example:
      penstock topics create orders --partitions 3 --config retention.ms=86400000
      penstock topics describe orders
    """


@topics.command("list")
@click.option("--internal", is_flag=True, help="Show Kafka's own topics too.")
@output_option
@connected
def list_topics(connection: Connection, internal: bool, output: str) -> None:
    """List the topics.

    \b
    Example:
      penstock topics list -o json
    """
    from penstock.cli.kafka.topic_filter import chosen_topics
    from penstock.cli.verbs.output import show_json, show_table

    known = metadata(connection.admin()).topics
    names = chosen_topics(list(known), None, exclude_internal=not internal)
    rows = [(name, len(known[name].partitions), _replication_factor(known[name])) for name in names]
    if output == "json":
        show_json(
            [
                {"topic": name, "partitions": count, "replication_factor": factor}
                for name, count, factor in rows
            ]
        )
    elif rows:
        show_table(["topic", "partitions", "replicas"], rows)
    else:
        click.echo("No topics yet. Create one: penstock topics create NAME", err=True)


def _replication_factor(topic: Any) -> int:
    return max((len(partition.replicas) for partition in topic.partitions.values()), default=0)


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics)
@output_option
@connected
def describe(connection: Connection, names: tuple[str, ...], output: str) -> None:
    """Show partitions, offsets and settings of topics, and how far their compaction is.

    \b
    Example:
      penstock topics describe orders
    """
    from penstock.cli.kafka.topics_describe import DEFAULT_CONFIG_SOURCE, describe_topics, topic_settings
    from penstock.cli.partition_offsets import spans
    from penstock.cli.verbs import compaction
    from penstock.cli.verbs.output import console, show_json, show_table
    from penstock.model.ids import TopicPartition

    admin = connection.admin()
    _ensure_there(admin, names)
    settings = topic_settings(admin, list(names))
    shown = []
    for topic in describe_topics(admin, connection, list(names)):
        offsets = spans(admin, [TopicPartition(topic.name, one.partition) for one in topic.partitions])
        changed = {
            name: entry.value
            for name, entry in sorted(settings[topic.name].items())
            if entry.source != DEFAULT_CONFIG_SOURCE
        }
        partitions = [
            _partition(one, offsets[TopicPartition(topic.name, one.partition)])
            for one in sorted(topic.partitions, key=lambda one: one.partition)
        ]
        cleaners = {}
        if "compact" in settings[topic.name]["cleanup.policy"].value:
            leaders = {TopicPartition(topic.name, one.partition): one.leader for one in topic.partitions}
            cleaners = compaction.ask_cleaners(connection, leaders)
        for partition in partitions:
            cleaner = cleaners.get(TopicPartition(topic.name, partition["partition"]))
            if cleaner is not None and output == "json":
                partition["compaction"] = compaction.as_json(cleaner)
        shown.append(
            {"topic": topic.name, "id": topic.topic_id, "configs": changed, "partitions": partitions}
        )
        if output == "json":
            continue
        console().print(f"[bold]{topic.name}[/bold]  id {topic.topic_id}")
        for name, value in changed.items():
            click.echo(f"  {name} = {value}")
        show_table(
            ["partition", "leader", "replicas", "in sync", "start", "end"],
            [[_cell(value) for value in partition.values()] for partition in partitions],
        )
        if cleaners:
            click.echo("  compaction")
            rows = [compaction.as_row(key.partition, cleaner) for key, cleaner in sorted(cleaners.items())]
            show_table(compaction.COLUMNS, rows)
    if output == "json":
        show_json(shown)


def _partition(one: PartitionDescription, span: Span) -> dict[str, Any]:
    return {
        "partition": one.partition,
        "leader": one.leader,
        "replicas": one.replicas,
        "isr": one.isr,
        "start_offset": span.start_offset,
        "end_offset": span.end_offset,
    }


def _cell(value: Any) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _ensure_there(admin: Any, names: tuple[str, ...]) -> None:
    known = metadata(admin).topics
    for name in names:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise UserError(f"there is no topic '{name}'.{hint}")


@topics.command()
@click.argument("name", metavar="TOPIC")
@click.option(
    "-p", "--partitions", type=click.IntRange(min=1), help="How many; else what the broker gives by default."
)
@click.option(
    "-r", "--replication-factor", type=click.IntRange(1, 32767), help="On how many brokers each is kept."
)
@click.option(
    "-c", "--config", "config", multiple=True, metavar="NAME=VALUE", help="A setting; may be repeated."
)
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is no error.")
@connected
def create(
    connection: Connection,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    config: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create a topic.

    \b
    Example:
      penstock topics create orders --partitions 3 --config cleanup.policy=compact
    """
    from penstock.cli.verbs.output import say

    settings = pairs(config, what="the setting")
    admin = connection.admin()
    new_topic = admin_types().NewTopic(name, partitions or -1, replication_factor or -1, config=settings)
    try:
        for future in admin.create_topics([new_topic], operation_timeout=OPERATION_TIMEOUT_S).values():
            result(future)
    except Refused as error:
        if error.code != TOPIC_ALREADY_EXISTS or not if_not_exists:
            raise
        say(f"{name} is there already")
        return
    say(f"created {name}")


@topics.command()
@click.argument("name", metavar="TOPIC", shell_complete=complete_topics)
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="How many there shall be from now on.")
@click.option(
    "-r",
    "--replication-factor",
    type=click.IntRange(1, 32767),
    help="On how many brokers each shall be kept from now on; waits until they are in sync.",
)
@click.option(
    "--throttle",
    type=click.IntRange(min=1024),
    metavar="BYTES",
    help="With -r: brokers send each other at most so much for it, in bytes per second.",
)
@click.option(
    "-c", "--config", "config", multiple=True, metavar="NAME=VALUE", help="A setting; may be repeated."
)
@connected
def alter(
    connection: Connection,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    throttle: int | None,
    config: tuple[str, ...],
) -> None:
    """Give a topic more partitions, another number of replicas, or other settings.

    \b
    Example:
      penstock topics alter orders --partitions 6
      penstock topics alter orders --replication-factor 3
    """
    from penstock.cli.settings import TOPIC, Change, alter_settings
    from penstock.cli.verbs.output import say

    if partitions is None and replication_factor is None and not config:
        raise click.UsageError("Nothing to change: give --partitions, --replication-factor or --config.")
    settings = pairs(config, what="the setting")
    admin = connection.admin()
    _ensure_there(admin, (name,))
    if partitions is not None:
        for future in admin.create_partitions([admin_types().NewPartitions(name, partitions)]).values():
            result(future)
        say(f"{name} has {partitions} partitions now")
    if replication_factor is not None:
        _change_factor(connection, name, replication_factor, throttle)
    if settings:
        alter_settings(connection, TOPIC, name, Change(settings, []))
        say(f"changed {', '.join(settings)} of {name}")


def _change_factor(connection: Connection, name: str, factor: int, throttle: int | None) -> None:
    from penstock.cli.moves.plans import with_factor
    from penstock.cli.verbs.moving import move

    move(
        connection,
        lambda states, racks: with_factor(states, racks, name, factor),
        f"{name} has {factor} {'replica' if factor == 1 else 'replicas'} of each partition now",
        throttle=throttle,
    )


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@connected
def delete(connection: Connection, names: tuple[str, ...], yes: bool) -> None:
    """Delete topics and all that is in them. Asks first when it runs on a terminal.

    \b
    Example:
      penstock topics delete orders --yes
    """
    from penstock.cli.verbs.output import say

    admin = connection.admin()
    _ensure_there(admin, names)
    if not yes and sys.stdin.isatty() and not click.confirm(f"Delete {', '.join(names)} with all records?"):
        raise click.Abort
    for name, future in admin.delete_topics(list(names), operation_timeout=OPERATION_TIMEOUT_S).items():
        result(future)
        say(f"deleted {name}")
