"""penstock transactions: list, describe, hanging, abort."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from penstock.cli.verbs.common_options import administered, complete_topics, output_option, yes_option
from penstock.cli.verbs.output import NOTHING, Column, confirm, facts, say, show, show_rows
from penstock.client.errors import Refused, UserError

if TYPE_CHECKING:
    from penstock.admin import Cluster
    from penstock.admin.transactions import Listed, OpenTransaction, Transaction


@click.group()
def transactions() -> None:
    """See transactions; find and end those that hang.

    \b
    Example:
      penstock transactions list --longer-than 60
      penstock transactions hanging
    """


LISTED: list[Column[Listed]] = [
    Column("transactional_id", lambda one: one.transactional_id),
    Column("coordinator", lambda one: one.coordinator),
    Column("producer_id", lambda one: one.producer_id, "producer"),
    Column("state", lambda one: one.state),
]


@transactions.command("list")
@click.option("--longer-than", type=float, metavar="SECONDS", help="Only those open for longer.")
@click.option("--pattern", metavar="REGEX", help="Only ids that this matches.")
@output_option
@administered
def list_transactions(cluster: Cluster, longer_than: float | None, pattern: str | None, output: str) -> None:
    """List the transactional ids and their states.

    \b
    Example:
      penstock transactions list -o json
    """
    found = cluster.transactions.list(longer_than_s=longer_than, pattern=pattern)
    show_rows(output, found, LISTED, empty="No transactional ids.")


@transactions.command()
@click.argument("transactional_id", metavar="ID")
@output_option
@administered
def describe(cluster: Cluster, transactional_id: str, output: str) -> None:
    """Show what a transactional id is doing.

    \b
    Example:
      penstock transactions describe billing-1
    """
    from penstock.model.errors import ErrorCode

    try:
        found = cluster.transactions.describe(transactional_id)
    except Refused as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        raise UserError(
            f"there is no transactional id '{transactional_id}'. Those that are there: penstock transactions list"
        ) from None
    show(output, found._asdict, lambda: facts(_facts(found)))


def _facts(found: Transaction) -> dict[str, object]:
    started = NOTHING
    if found.started_ms is not None:
        ago_s = time.time() - found.started_ms / 1000
        started = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(found.started_ms / 1000))} ({ago_s:.0f} s ago)"
    return {
        "transactional id": found.transactional_id,
        "state": found.state,
        "producer": f"{found.producer_id}, epoch {found.producer_epoch}",
        "coordinator": found.coordinator,
        "timeout": f"{found.timeout_ms} ms",
        "started": started,
        "partitions": ", ".join(map(str, sorted(found.partitions))) or NOTHING,
    }


HANGING: list[Column[OpenTransaction]] = [
    Column("topic", lambda one: one.partition.topic),
    Column("partition", lambda one: one.partition.partition),
    Column("start_offset", lambda one: one.producer.start_offset, "start"),
    Column("producer_id", lambda one: one.producer.producer_id, "producer"),
    Column("producer_epoch", lambda one: one.producer.producer_epoch, "epoch"),
    Column("coordinator_epoch", lambda one: one.producer.coordinator_epoch, None),
    Column("last_sequence", lambda one: one.producer.last_sequence, None),
    Column("last_timestamp_ms", lambda one: one.producer.last_timestamp_ms, None),
]


@transactions.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@click.option(
    "--minutes", type=click.IntRange(min=0), default=15, show_default=True,
    help="What is younger may still end by itself.",
)  # fmt: skip
@output_option
@administered
def hanging(cluster: Cluster, topics: tuple[str, ...], minutes: int, output: str) -> None:
    """Find transactions that no coordinator will end; readers of committed records wait behind them.

    \b
    Example:
      penstock transactions hanging orders
    """
    found = cluster.transactions.hanging(*topics, longer_than_s=minutes * 60)
    hint = "End one with: penstock transactions abort TOPIC PARTITION START"
    show_rows(output, found, HANGING, empty="Nothing hangs.", hint=hint)


@transactions.command()
@click.argument("topic", shell_complete=complete_topics)
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("start", type=click.IntRange(min=0))
@yes_option
@administered
def abort(cluster: Cluster, topic: str, partition: int, start: int, yes: bool) -> None:
    """Abort the hanging transaction that begins at START in a partition. On a terminal it asks first.

    \b
    Example:
      penstock transactions abort orders 0 4711
    """
    from penstock.admin import TopicPartition

    where = TopicPartition(topic, partition)
    found = cluster.transactions.open_at(where, start)
    confirm(f"Abort the transaction of producer {found.producer.producer_id} in {where}?", yes=yes)
    cluster.transactions.abort(found)
    say(f"aborted the transaction at {start} in {where}")
