"""penstock offsets: where partitions begin and end."""

import click

from penstock.cli.clients import Connection, metadata
from penstock.cli.failures import UserError
from penstock.cli.verbs.common_options import complete_topics, connected, output_option


@click.command()
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@click.option("--internal", is_flag=True, help="Show Kafka's own topics too.")
@output_option
@connected
def offsets(connection: Connection, names: tuple[str, ...], internal: bool, output: str) -> None:
    """Show the first offset and the end of each partition; of all topics where none is named.

    \b
    Example:
      penstock offsets orders
    """
    from penstock.cli.kafka.topic_filter import chosen_topics
    from penstock.cli.partition_offsets import spans
    from penstock.cli.verbs.output import show_json, show_table
    from penstock.model.ids import TopicPartition

    admin = connection.admin()
    known = metadata(admin).topics
    for name in names:
        if name not in known:
            raise UserError(f"there is no topic '{name}'.")
    chosen = list(names) or chosen_topics(list(known), None, exclude_internal=not internal)
    found = spans(
        admin, [TopicPartition(name, number) for name in chosen for number in sorted(known[name].partitions)]
    )
    if output == "json":
        show_json(
            [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "start_offset": span.start_offset,
                    "end_offset": span.end_offset,
                }
                for one, span in found.items()
            ]
        )
    else:
        rows = [
            (
                one.topic,
                one.partition,
                span.start_offset,
                span.end_offset,
                span.end_offset - span.start_offset,
            )
            for one, span in found.items()
        ]
        show_table(["topic", "partition", "start", "end", "between"], rows)
