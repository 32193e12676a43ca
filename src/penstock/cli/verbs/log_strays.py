"""penstock log strays: list, restore, remove."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from penstock.cli.clients import Connection
from penstock.cli.failures import UserError
from penstock.cli.verbs.common_options import connected, output_option, pairs

if TYPE_CHECKING:
    from penstock.cli.strays import FoundStray

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
    """


@strays.command("list")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path())
@output_option
@connected
def list_strays(connection: Connection, directory: str | None, output: str) -> None:
    """List the strays of all brokers, or those in a data directory.

    \b
    Example:
      penstock log strays list
      penstock log strays list ./data -o json
    """
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.strays import ask_strays, read_strays
    from penstock.cli.verbs.output import show_json

    if directory is not None:
        found = read_strays(directory)
    else:
        with ClusterClient(connection) as client:
            found = ask_strays(client)
    if output == "json":
        show_json([stray.as_json() for stray in found])
    elif found:
        _show(found)
    else:
        click.echo("No strays.", err=True)


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
@click.argument("topic", metavar="TOPIC")
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
    topic: str,
    name: str | None,
    settings: tuple[str, ...],
    partitions: int | None,
    allow_missing: bool,
    yes: bool,
    output: str,
) -> None:
    """Make a topic of its strays again, with its records, offsets and id.

    TOPIC is a name, or an id where several topics had the name. Start all brokers that may have strays of it first: of each
    partition the replica that goes furthest leads until the others have caught up. The topic's configs were in the metadata that
    is lost: give them with --config, or later with penstock configs set. Until then the topic keeps all records: retention.ms
    and retention.bytes are -1, cleanup.policy is delete.

    Partitions and replicas are counted from the strays of the brokers that are there. When a broker comes back later with strays
    of further partitions, restore the topic again: it gets these too.

    \b
    Example:
      penstock log strays restore orders --config retention.ms=-1
      penstock log strays restore orders --as orders-before
    """
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.logs.units import count_text
    from penstock.cli.strays import ask_strays, brokers_away, plan, restored_configs
    from penstock.cli.strays import restore as make_again
    from penstock.cli.verbs.output import say, show_json
    from penstock.model.ids import id_text
    from penstock.model.internal_topics import is_internal

    given = pairs(settings, what="config")
    with ClusterClient(connection) as client:
        found = ask_strays(client)
        described = client.metadata()
        planned = plan(found, topic, name=name, partitions=partitions, topics=described.topics)
        if planned.first_partition and given:
            raise UserError(f"{planned.name} is there, with configs: change them with penstock configs set")
        if planned.missing and not allow_missing:
            missing = ", ".join(map(str, planned.missing))
            raise UserError(
                f"no broker has a stray of partition {missing} of {topic}: start the broker that has it, or let it begin "
                "empty with --allow-missing"
            )
        made = f"{count_text(planned.num_partitions, 'partition')}, {planned.replicas_text}"
        counted = f"counted from the strays of {_brokers(planned.brokers)}"
        away = brokers_away(described)
        if away:
            counted += f", while {_brokers(away)} {'is' if len(away) == 1 else 'are'} not there"
        question = f"Make {planned.name} again with {made} ({counted}), on brokers {planned.assignments}?"
        if not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
            raise click.Abort
        configs = {} if planned.first_partition else restored_configs(planned.name, given)
        make_again(client, planned, configs)
    if output == "json":
        show_json(
            {
                "topic": planned.name,
                "topic_id": id_text(planned.topic_id),
                "first_partition": planned.first_partition,
                "replicas": planned.assignments,
                "leaders": planned.leaders,
                "counted_on_brokers": planned.brokers,
                "brokers_away": away,
                "configs": configs,
                "end_offsets": planned.end_offsets,
                "missing": planned.missing,
            }
        )
    else:
        if planned.first_partition:
            made = f"partitions from {planned.first_partition} on again: {made}"
            say(f"{planned.name} has its {made}, their end offsets {planned.end_offsets}")
        else:
            say(f"{planned.name} is a topic again: {made}, end offsets {planned.end_offsets}")
        click.echo(
            f"This is {counted}. When a broker comes back that has more of it, restore it again; penstock topics alter "
            f"{planned.name} --replication-factor N gives it more replicas.",
            err=True,
        )
        assumed = " ".join(f"{key}={value}" for key, value in configs.items() if key not in given)
        if assumed and not is_internal(planned.name):
            click.echo(
                f"Its configs are lost, so it keeps all records ({assumed}): penstock configs set --topic {planned.name} gives "
                "it what it had, penstock configs delete the defaults.",
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

    STRAY is a topic, a topic's partition (orders-0), or the name of a stray's directory.

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
            if not any(word in _names_of(stray) for stray in found):
                raise UserError(f"{directory} has no stray {word}")
        found = [stray for stray in found if not _names_of(stray).isdisjoint(chosen)]
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


def _names_of(stray: FoundStray) -> set[str]:
    return {stray.topic, f"{stray.topic}-{stray.partition}", stray.directory}
