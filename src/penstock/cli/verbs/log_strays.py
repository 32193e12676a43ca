"""penstock log strays: list, restore, remove."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from penstock.cli.clients import Connection
from penstock.cli.failures import UserError
from penstock.cli.verbs.common_options import connected, output_option, pairs

if TYPE_CHECKING:
    from penstock.cli.restoration import Restoration
    from penstock.cli.strays import FoundStray, StrayTopic

TOPIC_COLUMNS = ("topic", "topic id", "partitions", "strays", "size", "brokers", "in the cluster")
COLUMNS = ("stray", "topic id", "start", "end", "size", "set aside", "where")


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
@connected
def list_strays(connection: Connection, directory: str | None, topic: str | None, output: str) -> None:
    """List the topics of which brokers have strays, or of which they are in a data directory.

    \b
    Example:
      penstock log strays list
      penstock log strays list --topic orders
      penstock log strays list ./data -o json
    """
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.strays import ask_strays, by_topic, read_strays
    from penstock.cli.verbs.output import show_json

    if directory is not None:
        found = read_strays(directory)
        topics = by_topic(found)
    else:
        with ClusterClient(connection) as client:
            found = ask_strays(client)
            topics = by_topic(found, client.metadata().topics)
    if topic is not None:
        found = [stray for stray in found if stray.is_of(topic)]
    if output == "json":
        show_json([stray.as_json() for stray in found])
    elif not found:
        click.echo("No strays." if topic is None else f"No strays of {topic}.", err=True)
    elif topic is not None:
        _show(found)
    else:
        _show_topics(topics, is_of_cluster=directory is None)


def _show_topics(topics: list[StrayTopic], *, is_of_cluster: bool) -> None:
    from penstock.cli.logs.units import size_text
    from penstock.cli.verbs.output import show_table
    from penstock.model.ids import id_text

    rows: list[list[object]] = []
    for topic in topics:
        row: list[object] = [
            topic.name,
            id_text(topic.topic_id),
            ranges_text(topic.partitions),
            len(topic.strays),
        ]
        row.append(size_text(topic.size_bytes))
        if is_of_cluster:
            row += [", ".join(map(str, topic.brokers)), _what_the_cluster_has(topic)]
        rows.append(row)
    show_table(TOPIC_COLUMNS if is_of_cluster else TOPIC_COLUMNS[:-2], rows)
    if is_of_cluster and any(topic.lost for topic in topics):
        click.echo(
            "penstock log strays restore TOPIC makes one a topic again, --all does so with all that the cluster lacks; "
            "penstock log strays list --topic TOPIC shows each stray.",
            err=True,
        )


def _what_the_cluster_has(topic: StrayTopic) -> str:
    if topic.known_as is None:
        return "no"
    renamed = f", as {topic.known_as}" if topic.known_as != topic.name else ""
    return (f"lacks {ranges_text(topic.lost)}" if topic.lost else "yes") + renamed


def ranges_text(numbers: list[int]) -> str:
    """`0-2, 5` for [0, 1, 2, 5]."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return ", ".join("-".join(map(str, span)) for span in spans)


def _show(found: list[FoundStray]) -> None:
    from penstock.cli.logs.units import size_text, time_text
    from penstock.cli.verbs.output import show_table
    from penstock.model.ids import id_text

    show_table(
        COLUMNS,
        [
            (
                f"{stray.topic}-{stray.partition}",
                id_text(stray.topic_id),
                stray.start_offset,
                stray.end_offset,
                size_text(stray.size_bytes),
                time_text(stray.set_aside_ms),
                ("" if stray.broker is None else f"broker {stray.broker}: ") + stray.log_directory,
            )
            for stray in found
        ],
    )


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
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
@connected
def restore(
    connection: Connection,
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
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.failures import Refused
    from penstock.cli.restoration import brokers_away, lost_names, plan, restored_configs
    from penstock.cli.restoration import restore as make_again
    from penstock.cli.strays import ask_strays, by_topic
    from penstock.cli.verbs.output import say, show_json

    if (topic is not None) == all_of_them:
        raise UserError("say which topic to restore, or --all")
    given = pairs(settings, what="config")
    if all_of_them and (name is not None or given or partitions is not None):
        raise UserError("--as, --config and --partitions are for one topic, not for --all")
    done: list[Restoration] = []
    problems: dict[str, str] = {}
    with ClusterClient(connection) as client:
        found = ask_strays(client)
        described = client.metadata()
        away = brokers_away(described)
        plans: list[Restoration] = []
        for wanted in lost_names(by_topic(found, described.topics)) if topic is None else [topic]:
            try:
                planned = plan(found, wanted, name=name, partitions=partitions, topics=described.topics)
                _check(planned, given, allow_missing=allow_missing)
                plans.append(planned)
            except UserError as error:
                if not all_of_them:
                    raise
                problems[wanted] = str(error)
        if plans and not yes and sys.stdin.isatty() and not click.confirm(_question(plans, away), err=True):
            raise click.Abort
        for planned in plans:
            configs = {} if planned.first_partition else restored_configs(planned.name, given)
            try:
                make_again(client, planned, configs)
            except Refused as error:
                if not all_of_them:
                    raise
                problems[planned.name] = str(error)
            else:
                done.append(planned)
                if output != "json":
                    say(_is_back(planned))
    if output == "json":
        told = [
            {
                **planned.as_json(),
                "configs": {} if planned.first_partition else restored_configs(planned.name, given),
                "brokers_away": away,
            }
            for planned in done
        ]
        show_json({"restored": told, "problems": problems} if all_of_them else told[0])
    else:
        _tell(done, given, away)
        for wanted, problem in problems.items():
            click.echo(f"{wanted}: {problem}", err=True)
        if not done and not problems:
            click.echo("There is nothing to restore.", err=True)
    return 1 if problems else 0


def _check(planned: Restoration, given: Mapping[str, str], *, allow_missing: bool) -> None:
    if planned.first_partition and given:
        raise UserError(f"{planned.name} is there, with configs: change them with penstock configs set")
    if planned.missing and not allow_missing:
        raise UserError(
            f"no broker has a stray of partition {ranges_text(planned.missing)} of {planned.name}: start the broker that has it, "
            "or let it begin empty with --allow-missing"
        )


def _question(plans: list[Restoration], away: list[int]) -> str:
    if len(plans) > 1:
        names = ", ".join(planned.name for planned in plans)
        return f"Make {len(plans)} topics again ({names}), {_counted(plans, away)}?"
    (planned,) = plans
    counted = _counted(plans, away)
    return f"Make {planned.name} again with {_made(planned)} ({counted}), on brokers {planned.assignments}?"


def _made(planned: Restoration) -> str:
    from penstock.cli.logs.units import count_text

    return f"{count_text(planned.num_partitions, 'partition')}, {planned.replicas_text}"


def _counted(plans: list[Restoration], away: list[int]) -> str:
    counted = _brokers(sorted({broker for planned in plans for broker in planned.brokers}))
    if away:
        counted += f", while {_brokers(away)} {'is' if len(away) == 1 else 'are'} not there"
    return f"counted from the strays of {counted}"


def _is_back(planned: Restoration) -> str:
    first, made = planned.first_partition, f"{_made(planned)}, end offsets {planned.end_offsets}"
    if first:
        return f"{planned.name} has its partitions from {first} on again: {made}"
    return f"{planned.name} is a topic again: {made}"


def _tell(done: list[Restoration], given: Mapping[str, str], away: list[int]) -> None:
    """From what it was counted, and what is still to be done."""
    from penstock.cli.restoration import restored_configs
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


def _brokers(ids: list[int]) -> str:
    return f"{'broker' if len(ids) == 1 else 'brokers'} {', '.join(map(str, ids))}"


@strays.command()
@click.argument("directory", metavar="DIR", type=click.Path())
@click.argument("chosen", metavar="STRAY...", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="All strays of the directory.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
def remove(directory: str, chosen: tuple[str, ...], all_of_them: bool, yes: bool, output: str) -> None:
    """Remove strays of a data directory, with all their records. The broker may run.

    STRAY is a topic, a topic's id, a topic's partition (orders-0), or the name of a stray's directory.

    \b
    Example:
      penstock log strays remove ./data orders --yes
    """
    import os

    from penstock.cli.logs.units import count_text, size_text
    from penstock.cli.strays import read_strays
    from penstock.cli.verbs.output import say, show_json
    from penstock.runtime.files import OsDisk

    if bool(chosen) == all_of_them:
        raise UserError("say which strays to remove, or --all")
    found = read_strays(directory)
    if not all_of_them:
        for word in chosen:
            if not any(_is_named(stray, word) for stray in found):
                raise UserError(f"{directory} has no stray {word}")
        found = [stray for stray in found if any(_is_named(stray, word) for word in chosen)]
    size = size_text(sum(stray.size_bytes for stray in found))
    question = f"Remove {count_text(len(found), 'stray')} ({size}) with all records?"
    if found and not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
        raise click.Abort
    disk = OsDisk()
    for stray in found:
        try:
            disk.delete_tree(os.path.join(stray.log_directory, stray.directory))
        except OSError as error:
            raise UserError(f"cannot remove {error.filename}: {error.strerror}") from None
    if output == "json":
        show_json([stray.as_json() for stray in found])
    else:
        say(f"removed {count_text(len(found), 'stray')}, {size}")


def _is_named(stray: FoundStray, word: str) -> bool:
    return stray.is_of(word) or word in (f"{stray.topic}-{stray.partition}", stray.directory)
