"""penstock transactions: list, describe, hanging, abort."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from penstock.cli.clients import Connection, metadata
from penstock.cli.failures import Refused, UserError
from penstock.cli.verbs.common_options import complete_topics, connected, output_option

if TYPE_CHECKING:
    from penstock.cli.transactions import Transaction
    from penstock.model.ids import TopicPartition

MINUTE_MS = 60_000


@click.group()
def transactions() -> None:
    """See transactions; find and end those that hang.

    \b
    Example:
      penstock transactions list --longer-than 60
      penstock transactions hanging
    """


@transactions.command("list")
@click.option("--longer-than", type=float, metavar="SECONDS", help="Only those open for longer.")
@click.option("--pattern", metavar="REGEX", help="Only ids that this matches.")
@output_option
@connected
def list_transactions(
    connection: Connection, longer_than: float | None, pattern: str | None, output: str
) -> None:
    """List the transactional ids and their states.

    \b
    Example:
      penstock transactions list -o json
    """
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.transactions import NO_DURATION, listed_transactions
    from penstock.cli.verbs.output import show_json, show_table

    longer_than_ms = NO_DURATION if longer_than is None else round(longer_than * 1000)
    with ClusterClient(connection) as cluster:
        listed = sorted(listed_transactions(cluster, longer_than_ms=longer_than_ms, pattern=pattern))
    if output == "json":
        show_json([one._asdict() for one in listed])
    elif listed:
        show_table(["transactional id", "coordinator", "producer", "state"], listed)
    else:
        click.echo("No transactional ids.", err=True)


@transactions.command()
@click.argument("transactional_id", metavar="ID")
@output_option
@connected
def describe(connection: Connection, transactional_id: str, output: str) -> None:
    """Show what a transactional id is doing.

    \b
    Example:
      penstock transactions describe billing-1
    """
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.transactions import described_transaction
    from penstock.cli.verbs.output import show_json, show_table
    from penstock.model.errors import ErrorCode

    with ClusterClient(connection) as cluster:
        try:
            found = described_transaction(cluster, transactional_id)
        except Refused as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            raise UserError(
                f"there is no transactional id '{transactional_id}'. Those that are there: penstock transactions list"
            ) from None
    if output == "json":
        show_json({**found._asdict(), "partitions": [list(one) for one in found.partitions]})
    else:
        show_table(["", ""], _facts(found))


def _facts(found: Transaction) -> list[tuple[str, str]]:
    started = "–"
    if found.started_ms is not None:
        ago_s = time.time() - found.started_ms / 1000
        started = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(found.started_ms / 1000))} ({ago_s:.0f} s ago)"
    return [
        ("transactional id", found.transactional_id),
        ("state", found.state),
        ("producer", f"{found.producer_id}, epoch {found.producer_epoch}"),
        ("coordinator", str(found.coordinator)),
        ("timeout", f"{found.timeout_ms} ms"),
        ("started", started),
        ("partitions", ", ".join(map(str, sorted(found.partitions))) or "–"),
    ]


@transactions.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@click.option(
    "--minutes", type=click.IntRange(min=0), default=15, show_default=True,
    help="What is younger may still end by itself.",
)  # fmt: skip
@output_option
@connected
def hanging(connection: Connection, topics: tuple[str, ...], minutes: int, output: str) -> None:
    """Find transactions that no coordinator will end; readers of committed records wait behind them.

    \b
    Example:
      penstock transactions hanging orders
    """
    from penstock.cli import transactions as admin
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.verbs.output import show_json, show_table

    with ClusterClient(connection) as cluster:
        partitions = _partitions(connection, topics)
        found = admin.hanging(cluster, partitions, longer_than_ms=minutes * MINUTE_MS)
    if output == "json":
        show_json(
            [
                {"topic": partition.topic, "partition": partition.partition, **producer._asdict()}
                for partition, producer in found
            ]
        )
    elif found:
        show_table(
            ["topic", "partition", "start", "producer", "epoch"],
            [
                (partition.topic, partition.partition, one.start_offset, one.producer_id, one.producer_epoch)
                for partition, one in found
            ],
        )
        click.echo("End one with: penstock transactions abort TOPIC PARTITION START", err=True)
    else:
        click.echo("Nothing hangs.", err=True)


def _partitions(connection: Connection, topics: tuple[str, ...]) -> list[TopicPartition]:
    from penstock.model.ids import TopicPartition

    known = metadata(connection.admin()).topics
    for topic in topics:
        if topic not in known:
            raise UserError(f"there is no topic '{topic}'.")
    return [
        TopicPartition(topic, number)
        for topic in topics or sorted(known)
        for number in known[topic].partitions
    ]


@transactions.command()
@click.argument("topic", shell_complete=complete_topics)
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("start", type=click.IntRange(min=0))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@connected
def abort(connection: Connection, topic: str, partition: int, start: int, yes: bool) -> None:
    """Abort the hanging transaction that begins at START in a partition. On a terminal it asks first.

    \b
    Example:
      penstock transactions abort orders 0 4711
    """
    from penstock.cli import transactions as admin
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.verbs.output import say
    from penstock.model.ids import TopicPartition

    where = TopicPartition(topic, partition)
    with ClusterClient(connection) as cluster:
        for one in admin.producers(cluster, [where])[where]:
            if one.start_offset == start:
                break
        else:
            raise UserError(
                f"no open transaction begins at {start} in {where}: see penstock transactions hanging"
            )
        question = f"Abort the transaction of producer {one.producer_id} in {where}?"
        if not yes and sys.stdin.isatty() and not click.confirm(question):
            raise click.Abort
        marker = admin.AbortMarker(where, one.producer_id, one.producer_epoch, one.coordinator_epoch)
        admin.write_abort_marker(cluster, marker)
    say(f"aborted the transaction at {start} in {where}")
