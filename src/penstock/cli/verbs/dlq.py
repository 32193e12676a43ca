"""penstock dlq: what consumers could not handle, and giving it to them again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.verbs.common_options import administered, complete_topics, connected, output_option
from penstock.cli.verbs.output import say, show_table
from penstock.cli.verbs.output import show as present
from penstock.cli.verbs.record_format import Decoded, part
from penstock.cli.verbs.value_formats import read_formats
from penstock.client.clients import Connection
from penstock.client.value_formats import ReadFormats

if TYPE_CHECKING:
    from penstock.admin import Cluster
    from penstock.admin.facets.dead_letters import DeadRecord

COLUMNS = ["letter", "origin", "group", "failed", "attempts", "cause", "key", "value", "replayed"]
PREVIEW_CHARACTERS = 40
cause_option = click.option(
    "--cause", metavar="TEXT", help="Only those with this exception class, or this text in its message."
)


@click.group()
def dlq() -> None:
    """Show dead letters and replay them.

    Consumers made with penstock.consumer write what they cannot handle to a dead letter topic, and so do Connect's
    connectors; these say where it came from, and why, with errors.deadletterqueue.context.headers.enable.

    \b
    Example:
      penstock dlq show orders.dlq
      penstock dlq replay orders.dlq --cause TimeoutError
    """


@dlq.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@cause_option
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Only the first so many.")
@click.option("--waiting", is_flag=True, help="Only those that have not been replayed.")
@click.option("--stack", is_flag=True, help="Show where each failed, too.")
@output_option
@read_formats
@connected
def show(
    connection: Connection,
    topic: str,
    cause: str | None,
    limit: int | None,
    waiting: bool,
    stack: bool,
    output: str,
    formats: Callable[[Connection], ReadFormats],
) -> None:
    """Show dead letters: where they came from, why, and how often they were tried.

    \b
    Example:
      penstock dlq show orders.dlq --cause ValueError --stack
      penstock dlq show orders.dlq -o json
      penstock dlq show orders.dlq --value-format registry
    """
    from penstock.admin import Cluster

    with Cluster.over(connection) as cluster:
        found = cluster.dead_letters.list(topic, cause=cause, waiting=waiting, limit=limit)
    parts = formats(connection)
    decoded = [parts.readable(record.key, record.value) for record in found]

    def draw() -> None:
        if not found:
            click.echo(f"No dead letters in {topic}.", err=True)
            return
        show_table(COLUMNS, [_row(*each) for each in zip(found, decoded, strict=True)])
        for record in found if stack else ():
            if record.letter is not None:
                place = f"{record.partition}/{record.offset}"
                click.echo(f"\n{place}\n{record.letter.failure.stack.rstrip()}")

    present(output, lambda: [_as_json(*each) for each in zip(found, decoded, strict=True)], draw)


@dlq.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option("--to", metavar="TOPIC", help="Write to this topic, not to where each came from.")
@cause_option
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Replay no more than so many.")
@click.option("--dry-run", is_flag=True, help="Say what would be replayed, and do nothing.")
@click.option(
    "--keep-timestamps", is_flag=True, help="Give each its first timestamp, not that of the replay."
)
@administered
def replay(
    cluster: Cluster,
    topic: str,
    to: str | None,
    cause: str | None,
    limit: int | None,
    dry_run: bool,
    keep_timestamps: bool,
) -> None:
    """Write dead letters to the topics and partitions they came from, each once.

    They go out as they first came, with one header more: how often they were tried. The broker remembers which were
    replayed (group penstock-dlq-replay), so the next replay takes only what is left and what is new.

    \b
    Example:
      penstock dlq replay orders.dlq --dry-run
      penstock dlq replay orders.dlq --cause TimeoutError --limit 100
    """
    with _progress(topic) as advance:
        summary = cluster.dead_letters.replay(
            topic,
            to=to,
            cause=cause,
            limit=limit,
            keep_timestamps=keep_timestamps,
            dry_run=dry_run,
            show=advance,
        )
    targets = ", ".join(f"{count} to {name}" for name, count in sorted(summary.replayed.items()))
    rest = "the limit is reached" if summary.is_limited else f"{summary.left} left"
    if dry_run:
        click.echo(f"would replay {targets or 'nothing'}; {rest}")
    else:
        say(f"replayed {targets or 'nothing'}; {rest}")
    if summary.foreign:
        click.echo(f"{summary.foreign} records are not dead letters; --to would replay them, too", err=True)


@contextmanager
def _progress(topic: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    from penstock.cli.verbs.output import console

    with Progress(console=console(stderr=True)) as progress:
        task = progress.add_task(topic, total=None)
        yield lambda seen, total: progress.update(task, completed=seen, total=total)
        for one in progress.tasks:
            progress.update(one.id, completed=one.total or 0)


def _row(record: DeadRecord, decoded: Decoded) -> list[Any]:
    from penstock.client.json_lines import json_line

    place, letter = f"{record.partition}/{record.offset}", record.letter
    texts = {"key": record.key, "value": record.value}
    texts |= {name: json_line(value) for name, value in decoded.items()}
    data = [_preview(texts["key"]), _preview(texts["value"]), "yes" if record.is_replayed else "no"]
    if letter is None:
        return [place, "not a dead letter", "", "", 0, "", *data]
    cause = f"{letter.failure.cause.rpartition('.')[2]}: {letter.failure.message}"
    return [
        place,
        f"{letter.topic} {letter.partition}/{letter.offset}"
        if letter.partition >= 0
        else f"{letter.topic} (a source's)",
        letter.group,
        _time(letter.failure.last_failure_ms),
        letter.failure.attempts or "",
        _shortened(cause, 2 * PREVIEW_CHARACTERS),
        *data,
    ]


def _as_json(record: DeadRecord, decoded: Decoded) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        **part("key", record.key, decoded),
        **part("value", record.value, decoded),
        "replayed": record.is_replayed,
    }
    letter = record.letter
    if letter is not None:
        shown["origin"] = {
            "topic": letter.topic, "partition": letter.partition, "offset": letter.offset,
            "timestamp": letter.timestamp_ms, "group": letter.group,
            "headers": [
                {"name": name, "value": (value or b"").decode(errors="replace")} for name, value in letter.headers
            ],
        }  # fmt: skip
        shown["failure"] = letter.failure._asdict()
    return shown


def _preview(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = data[: 4 * PREVIEW_CHARACTERS].decode(errors="replace")
    return _shortened("".join(each if each.isprintable() else "·" for each in text), PREVIEW_CHARACTERS)


def _shortened(text: str, characters: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1] + "…"


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
