"""penstock offsets: where partitions begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.verbs.common_options import administered, complete_topics, output_option
from penstock.cli.verbs.output import Column, show_rows

if TYPE_CHECKING:
    from penstock.admin import Cluster, TopicPartition
    from penstock.admin.offsets import Span

SPANS: list[Column[tuple[TopicPartition, Span]]] = [
    Column("topic", lambda row: row[0].topic),
    Column("partition", lambda row: row[0].partition),
    Column("start_offset", lambda row: row[1].start_offset, "start"),
    Column("end_offset", lambda row: row[1].end_offset, "end"),
    Column(None, lambda row: row[1].end_offset - row[1].start_offset, "between"),
]


@click.command()
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@click.option("--internal", is_flag=True, help="Show Kafka's own topics too.")
@output_option
@administered
def offsets(cluster: Cluster, names: tuple[str, ...], internal: bool, output: str) -> None:
    """Show the first offset and the end of each partition; of all topics where none is named.

    \b
    Example:
      penstock offsets orders
    """
    chosen = names or [topic.name for topic in cluster.topics.list(internal=internal)]
    show_rows(output, cluster.offsets.spans(*chosen).items(), SPANS)
