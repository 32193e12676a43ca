"""penstock topics: list, describe, create, alter, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from penstock.cli.verbs.common_options import (
    administered,
    complete_topics,
    output_option,
    pairs,
    yes_option,
)
from penstock.cli.verbs.output import Column, as_json, cells, confirm, say, show, show_rows, show_table

if TYPE_CHECKING:
    from penstock.admin import Cluster
    from penstock.admin.compaction import Compaction
    from penstock.admin.facets.topics import TopicListing
    from penstock.admin.offsets import Span
    from penstock.admin.topics import PartitionDescription, TopicDescription

config_option = click.option(
    "-c", "--config", "config", multiple=True, metavar="NAME=VALUE", help="A config; may be repeated."
)


@click.group()
def topics() -> None:
    """List, describe, create, alter and delete topics.

    \b
    Example:
      penstock topics create orders --partitions 3 --config retention.ms=86400000
      penstock topics describe orders
    """


LISTED: list[Column[TopicListing]] = [
    Column("topic", lambda topic: topic.name),
    Column("partitions", lambda topic: topic.partitions),
    Column("replication_factor", lambda topic: topic.replication_factor, "replicas"),
]


@topics.command("list")
@click.option("--internal", is_flag=True, help="Show Kafka's own topics too.")
@output_option
@administered
def list_topics(cluster: Cluster, internal: bool, output: str) -> None:
    """List the topics.

    \b
    Example:
      penstock topics list -o json
    """
    found = cluster.topics.list(internal=internal)
    show_rows(output, found, LISTED, empty="No topics yet. Create one: penstock topics create NAME")


class Partition(NamedTuple):
    described: PartitionDescription
    span: Span
    compaction: Compaction | None


class Topic(NamedTuple):
    described: TopicDescription
    configs: dict[str, str | None]
    """Those that were changed."""
    partitions: list[Partition]


PARTITIONS: list[Column[Partition]] = [
    Column("partition", lambda one: one.described.partition),
    Column("leader", lambda one: one.described.leader),
    Column("replicas", lambda one: one.described.replicas),
    Column("isr", lambda one: one.described.isr, "in sync"),
    Column("start_offset", lambda one: one.span.start_offset, "start"),
    Column("end_offset", lambda one: one.span.end_offset, "end"),
]


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics)
@output_option
@administered
def describe(cluster: Cluster, names: tuple[str, ...], output: str) -> None:
    """Show partitions, offsets and configs of topics, and how far their compaction is.

    \b
    Example:
      penstock topics describe orders
    """
    found = _described(cluster, names)
    show(output, lambda: [_as_json(topic) for topic in found], lambda: _draw(found))


def _described(cluster: Cluster, names: tuple[str, ...]) -> list[Topic]:
    from penstock.model.ids import TopicPartition

    described = cluster.topics.describe(*names)
    configs = cluster.configs.of_topics(*names)
    spans = cluster.offsets.spans(*names)
    policies = {
        name: found["cleanup.policy"].value or ""
        for name, found in configs.items()
        if "cleanup.policy" in found
    }
    compacted = [name for name, policy in policies.items() if "compact" in policy]
    compactions = cluster.topics.compaction(*compacted) if compacted else {}
    return [
        Topic(
            topic,
            {
                name: entry.value
                for name, entry in sorted(configs.get(topic.name, {}).items())
                if not entry.is_default
            },
            [
                Partition(one, spans[place], compactions.get(place))
                for one in topic.partitions
                for place in (TopicPartition(topic.name, one.partition),)
            ],
        )
        for topic in described
    ]


def _as_json(topic: Topic) -> dict[str, Any]:
    from penstock.cli.verbs import compaction

    def partition(one: Partition) -> dict[str, Any]:
        known = {} if one.compaction is None else {"compaction": compaction.as_json(one.compaction)}
        return {**as_json(one, PARTITIONS), **known}

    return {
        "topic": topic.described.name,
        "id": topic.described.topic_id,
        "configs": topic.configs,
        "partitions": [partition(one) for one in topic.partitions],
    }


def _draw(found: list[Topic]) -> None:
    from penstock.cli.verbs import compaction
    from penstock.cli.verbs.output import console

    for topic in found:
        console().print(f"[bold]{topic.described.name}[/bold]  id {topic.described.topic_id}")
        for name, value in topic.configs.items():
            click.echo(f"  {name} = {value}")
        show_table(*cells(topic.partitions, PARTITIONS))
        rows = [
            compaction.as_row(one.described.partition, one.compaction)
            for one in topic.partitions
            if one.compaction is not None
        ]
        if rows:
            click.echo("  compaction")
            show_table(compaction.COLUMNS, rows)


@topics.command()
@click.argument("name", metavar="TOPIC")
@click.option(
    "-p", "--partitions", type=click.IntRange(min=1), help="How many; else what the broker gives by default."
)
@click.option(
    "-r", "--replication-factor", type=click.IntRange(1, 32767), help="On how many brokers each is kept."
)
@config_option
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is no error.")
@administered
def create(
    cluster: Cluster,
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
    is_new = cluster.topics.create(
        name,
        partitions=partitions,
        replication_factor=replication_factor,
        configs=pairs(config, what="the config"),
        exist_ok=if_not_exists,
    )
    say(f"created {name}" if is_new else f"{name} is there already")


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
@config_option
@administered
def alter(
    cluster: Cluster,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    throttle: int | None,
    config: tuple[str, ...],
) -> None:
    """Give a topic more partitions, another number of replicas, or other configs.

    \b
    Example:
      penstock topics alter orders --partitions 6
      penstock topics alter orders --replication-factor 3
    """
    from penstock.admin import ConfigResource
    from penstock.cli.verbs.moving import moved

    if partitions is None and replication_factor is None and not config:
        raise click.UsageError("Nothing to change: give --partitions, --replication-factor or --config.")
    configs = pairs(config, what="the config")
    cluster.topics.partitions(name)  # it is there
    if partitions is not None:
        cluster.topics.add_partitions(name, partitions)
        say(f"{name} has {partitions} partitions now")
    if replication_factor is not None:
        moved(
            lambda show: cluster.topics.set_replication_factor(
                name, replication_factor, throttle=throttle, show=show
            ),
            f"{name} has {replication_factor} {'replica' if replication_factor == 1 else 'replicas'} of each partition now",
        )
    if configs:
        cluster.configs.alter(ConfigResource.topic(name), set=configs)
        say(f"changed {', '.join(configs)} of {name}")


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics)
@yes_option
@administered
def delete(cluster: Cluster, names: tuple[str, ...], yes: bool) -> None:
    """Delete topics and all that is in them. Asks first when it runs on a terminal.

    \b
    Example:
      penstock topics delete orders --yes
    """
    cluster.topics.partitions(*names)  # they are there
    confirm(f"Delete {', '.join(names)} with all records?", yes=yes)
    cluster.topics.delete(*names)
    for name in names:
        say(f"deleted {name}")
