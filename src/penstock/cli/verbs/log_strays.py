"""penstock log strays: list, restore, remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.verbs.common_options import administered, output_option, pairs, yes_option
from penstock.cli.verbs.output import Column, cells, confirm, say, show, show_table
from penstock.client.errors import UserError
from penstock.model.ids import id_text
from penstock.model.units import count_text, ranges_text, size_text, time_text

if TYPE_CHECKING:
    from penstock.admin import Cluster
    from penstock.admin.restoration import Restoration
    from penstock.admin.strays import StrayTopic
    from penstock.model.strays import FoundStray


@click.group()
def strays() -> None:
    """List, restore and remove logs that the cluster's metadata does not place where they are.

    A broker never removes a log that it was not told to delete. When its topic is not in the metadata (ZooKeeper's data was
    lost, or the topic was deleted while the broker was away), it keeps the log as <topic>-<partition>.<topic id>-stray.

    \b
    Example:
      penstock log strays list
      penstock log strays restore orders
      penstock log strays restore --all
    """


@strays.command("list")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path())
@click.option(
    "--topic", metavar="TOPIC", help="Show each stray of one topic, with its offsets; by name or id."
)
@output_option
@administered
def list_strays(cluster: Cluster, directory: str | None, topic: str | None, output: str) -> None:
    """List the topics of which brokers have strays, or of which they are in a data directory.

    \b
    Example:
      penstock log strays list
      penstock log strays list --topic orders
      penstock log strays list ./data -o json
    """
    from penstock.admin.strays import by_topic
    from penstock.inspection.strays import read_strays

    topics = cluster.strays.topics() if directory is None else by_topic(read_strays(directory))
    found = [stray for one in topics for stray in one.strays if topic is None or stray.is_of(topic)]

    def draw() -> None:
        if not found:
            click.echo("No strays." if topic is None else f"No strays of {topic}.", err=True)
        elif topic is not None:
            show_table(*cells(found, STRAYS))
        elif directory is not None:
            show_table(*cells(topics, TOPICS))
        else:
            show_table(*cells(topics, [*TOPICS, *IN_CLUSTER]))
            if any(one.lost for one in topics):
                click.echo(HOW_TO_RESTORE, err=True)

    show(output, lambda: [stray.as_json() for stray in found], draw)


HOW_TO_RESTORE = (
    "penstock log strays restore TOPIC makes one a topic again, --all does so with all that the cluster lacks; "
    "penstock log strays list --topic TOPIC shows each stray."
)
TOPICS: list[Column[StrayTopic]] = [
    Column(None, lambda topic: topic.name, "topic"),
    Column(None, lambda topic: id_text(topic.topic_id), "topic id"),
    Column(None, lambda topic: ranges_text(topic.partitions), "partitions"),
    Column(None, lambda topic: len(topic.strays), "strays"),
    Column(None, lambda topic: size_text(topic.size_bytes), "size"),
]
IN_CLUSTER: list[Column[StrayTopic]] = [
    Column(None, lambda topic: ", ".join(map(str, topic.brokers)), "brokers"),
    Column(None, lambda topic: _what_the_cluster_has(topic), "in the cluster"),
]
STRAYS: list[Column[FoundStray]] = [
    Column(None, lambda stray: f"{stray.topic}-{stray.partition}", "stray"),
    Column(None, lambda stray: id_text(stray.topic_id), "topic id"),
    Column(None, lambda stray: stray.start_offset, "start"),
    Column(None, lambda stray: stray.end_offset, "end"),
    Column(None, lambda stray: size_text(stray.size_bytes), "size"),
    Column(None, lambda stray: time_text(stray.set_aside_ms), "set aside"),
    Column(
        None,
        lambda stray: ("" if stray.broker is None else f"broker {stray.broker}: ") + stray.log_directory,
        "where",
    ),
]


def _what_the_cluster_has(topic: StrayTopic) -> str:
    if topic.known_as is None:
        return "no"
    renamed = f", as {topic.known_as}" if topic.known_as != topic.name else ""
    return (f"lacks {ranges_text(topic.lost)}" if topic.lost else "yes") + renamed


@strays.command()
@click.argument("topic", metavar="[TOPIC]", required=False)
@click.option("--all", "all_of_them", is_flag=True, help="Restore all that the cluster lacks.")
@click.option("--as", "name", metavar="NAME", help="Give the topic another name.")
@click.option("--config", "settings", multiple=True, metavar="NAME=VALUE", help="A config of the topic.")
@click.option(
    "--partitions",
    type=click.IntRange(1),
    metavar="N",
    help="How many partitions the topic had; otherwise it gets as many as there are strays of.",
)
@click.option("--allow-missing", is_flag=True, help="Let partitions of which nobody has a stray begin empty.")
@yes_option
@output_option
@administered
def restore(
    cluster: Cluster,
    topic: str | None,
    all_of_them: bool,
    name: str | None,
    settings: tuple[str, ...],
    partitions: int | None,
    allow_missing: bool,
    yes: bool,
    output: str,
) -> int:
    """Make a topic of its strays again, with its records, offsets and id.

    TOPIC is a name, or an id where several topics had the name. Start all brokers that may have strays of it first: of each
    partition the replica that goes furthest leads until the others have caught up. The topic's configs were in the metadata that
    is lost: give them with --config, or later with penstock configs set. Until then the topic keeps all records: retention.ms
    and retention.bytes are -1, cleanup.policy is delete.

    Partitions and replicas are counted from the strays of the brokers that are there. When a broker comes back later with strays
    of further partitions, restore the topic again: it gets these too.

    With --all, what cannot be restored is told and left as it is, and the command ends with 1.

    \b
    Example:
      penstock log strays restore orders --config retention.ms=-1
      penstock log strays restore orders --as orders-before
      penstock log strays restore --all
    """
    from penstock.client.errors import Refused

    if (topic is not None) == all_of_them:
        raise UserError("say which topic to restore, or --all")
    given = pairs(settings, what="config")
    if all_of_them and (name is not None or given or partitions is not None):
        raise UserError("--as, --config and --partitions are for one topic, not for --all")
    if topic is None:
        plans, problems, away = cluster.strays.plan_all(allow_missing=allow_missing)
    else:
        plans, problems, away = cluster.strays.plan(
            topic, name=name, partitions=partitions, configs=given, allow_missing=allow_missing
        )
    if plans:
        confirm(_question(plans, away), yes=yes)
    done: list[tuple[Restoration, dict[str, str]]] = []
    for planned in plans:
        try:
            done.append((planned, cluster.strays.restore(planned, given)))
        except Refused as error:
            if not all_of_them:
                raise
            problems[planned.name] = str(error)
            continue
        if output != "json":
            say(_is_back(planned))

    def document() -> Any:
        told = [{**planned.as_json(), "configs": configs, "brokers_away": away} for planned, configs in done]
        return {"restored": told, "problems": problems} if all_of_them else told[0]

    def draw() -> None:
        _tell([planned for planned, _ in done], given, away)
        for wanted, problem in problems.items():
            click.echo(f"{wanted}: {problem}", err=True)
        if not done and not problems:
            click.echo("There is nothing to restore.", err=True)

    show(output, document, draw)
    return 1 if problems else 0


def _question(plans: Sequence[Restoration], away: Sequence[int]) -> str:
    if len(plans) > 1:
        names = ", ".join(planned.name for planned in plans)
        return f"Make {len(plans)} topics again ({names}), {_counted(plans, away)}?"
    (planned,) = plans
    counted = _counted(plans, away)
    return f"Make {planned.name} again with {_made(planned)} ({counted}), on brokers {planned.assignments}?"


def _made(planned: Restoration) -> str:
    return f"{count_text(planned.num_partitions, 'partition')}, {planned.replicas_text}"


def _counted(plans: Sequence[Restoration], away: Sequence[int]) -> str:
    counted = _brokers(sorted({broker for planned in plans for broker in planned.brokers}))
    if away:
        counted += f", while {_brokers(away)} {'is' if len(away) == 1 else 'are'} not there"
    return f"counted from the strays of {counted}"


def _is_back(planned: Restoration) -> str:
    first, made = planned.first_partition, f"{_made(planned)}, end offsets {planned.end_offsets}"
    if first:
        return f"{planned.name} has its partitions from {first} on again: {made}"
    return f"{planned.name} is a topic again: {made}"


def _tell(done: Sequence[Restoration], given: Mapping[str, str], away: Sequence[int]) -> None:
    """From what it was counted, and what is still to be done."""
    from penstock.admin.restoration import restored_configs
    from penstock.model.internal_topics import is_internal

    if not done:
        return
    name = done[0].name if len(done) == 1 else "TOPIC"
    click.echo(
        f"This is {_counted(done, away)}. When a broker comes back that has more, restore again; penstock topics alter {name} "
        "--replication-factor N makes more replicas.",
        err=True,
    )
    without_configs = [one for one in done if not one.first_partition and not is_internal(one.name)]
    if without_configs:
        assumed = restored_configs(without_configs[0].name, given).items() - given.items()
        if assumed:
            click.echo(
                f"Configs are lost, so all records are kept ({' '.join(f'{key}={value}' for key, value in sorted(assumed))}): "
                f"penstock configs set --topic {name} gives back what there was, penstock configs delete the defaults.",
                err=True,
            )


def _brokers(ids: Sequence[int]) -> str:
    return f"{'broker' if len(ids) == 1 else 'brokers'} {', '.join(map(str, ids))}"


@strays.command()
@click.argument("directory", metavar="DIR", type=click.Path())
@click.argument("chosen", metavar="STRAY...", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="All strays of the directory.")
@yes_option
@output_option
def remove(directory: str, chosen: tuple[str, ...], all_of_them: bool, yes: bool, output: str) -> None:
    """Remove strays of a data directory, with all their records. The broker may run.

    STRAY is a topic, a topic's id, a topic's partition (orders-0), or the name of a stray's directory.

    \b
    Example:
      penstock log strays remove ./data orders --yes
    """
    from penstock.inspection.strays import read_strays, remove_strays

    if bool(chosen) == all_of_them:
        raise UserError("say which strays to remove, or --all")
    found = read_strays(directory)
    if not all_of_them:
        for word in chosen:
            if not any(_is_named(stray, word) for stray in found):
                raise UserError(f"{directory} has no stray {word}")
        found = [stray for stray in found if any(_is_named(stray, word) for word in chosen)]
    size = size_text(sum(stray.size_bytes for stray in found))
    if found:
        confirm(f"Remove {count_text(len(found), 'stray')} ({size}) with all records?", yes=yes)
    remove_strays(found)
    show(
        output,
        lambda: [stray.as_json() for stray in found],
        lambda: say(f"removed {count_text(len(found), 'stray')}, {size}"),
    )


def _is_named(stray: FoundStray, word: str) -> bool:
    return stray.is_of(word) or word in (f"{stray.topic}-{stray.partition}", stray.directory)
