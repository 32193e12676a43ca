"""penstock dlq: what consumers could not handle, and giving it to them again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.clients import Connection
from penstock.cli.verbs.common_options import complete_topics, connected, output_option

if TYPE_CHECKING:
    from penstock.cli.verbs.dlq_reading import Letter

PREVIEW_CHARACTERS = 40
cause_option = click.option(
    "--cause", metavar="TEXT", help="Only those with this exception class, or this text in its message."
)


@click.group()
def dlq() -> None:
    """Show dead letters and replay them.

    Consumers made with penstock.consumer write what they cannot handle to a dead letter topic.

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
@connected
def show(
    connection: Connection,
    topic: str,
    cause: str | None,
    limit: int | None,
    waiting: bool,
    stack: bool,
    output: str,
) -> None:
    """Show dead letters: where they came from, why, and how often they were tried.

    \b
    Example:
      penstock dlq show orders.dlq --cause ValueError --stack
      penstock dlq show orders.dlq -o json
    """
    from penstock.cli.verbs.dlq_reading import DeadLetterReader, matches
    from penstock.cli.verbs.output import show_json, show_table

    reader = DeadLetterReader(connection, topic)
    try:
        replayed = reader.replayed()
        shown: list[tuple[Letter, bool]] = []
        for letter in reader.letters():
            number, offset = letter.place
            is_replayed = offset in replayed[number]
            if matches(letter, cause) and not (waiting and is_replayed):
                shown.append((letter, is_replayed))
                if len(shown) == limit:
                    break
    finally:
        reader.close()
    if output == "json":
        show_json([_as_json(letter, is_replayed) for letter, is_replayed in shown])
        return
    if not shown:
        click.echo(f"No dead letters in {topic}.", err=True)
        return
    columns = ["letter", "origin", "group", "failed", "attempts", "cause", "key", "value", "replayed"]
    show_table(columns, [_row(letter, is_replayed) for letter, is_replayed in shown])
    if stack:
        _show_stacks([letter for letter, _ in shown])


@dlq.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option("--to", metavar="TOPIC", help="Write to this topic, not to where each came from.")
@cause_option
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Replay no more than so many.")
@click.option("--dry-run", is_flag=True, help="Say what would be replayed, and do nothing.")
@click.option(
    "--keep-timestamps", is_flag=True, help="Give each its first timestamp, not that of the replay."
)
@connected
def replay(
    connection: Connection,
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
    from penstock.cli.verbs.dlq_replaying import Choice, Replay
    from penstock.cli.verbs.output import say

    job = Replay(connection, topic, Choice(to, cause, limit, keep_timestamps), dry_run=dry_run)
    try:
        with _progress(topic, sum(job.reader.ends.values())) as advance:
            summary = job.run(advance)
    finally:
        job.close()
    targets = ", ".join(f"{count} to {name}" for name, count in sorted(summary.replayed.items()))
    rest = "the limit is reached" if summary.is_limited else f"{summary.left} left"
    if dry_run:
        click.echo(f"would replay {targets or 'nothing'}; {rest}")
    else:
        say(f"replayed {targets or 'nothing'}; {rest}")
    if summary.foreign:
        click.echo(f"{summary.foreign} records are not dead letters; --to would replay them, too", err=True)


@contextmanager
def _progress(topic: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress

    from penstock.cli.verbs.output import console

    with Progress(console=console(stderr=True)) as progress:
        task = progress.add_task(topic, total=total)
        yield lambda count: progress.advance(task, count)
        progress.update(task, completed=total)


def _row(letter: Letter, is_replayed: bool) -> list[Any]:
    message, dead = letter.message, letter.dead
    number, offset = letter.place
    place = f"{number}/{offset}"
    data = [_preview(message.key()), _preview(message.value()), "yes" if is_replayed else "no"]
    if dead is None:
        return [place, "not a dead letter", "", "", 0, "", *data]
    cause = f"{dead.failure.cause.rpartition('.')[2]}: {dead.failure.message}"
    return [
        place,
        f"{dead.topic} {dead.partition}/{dead.offset}",
        dead.group,
        _time(dead.failure.last_failure_ms),
        dead.failure.attempts,
        _shortened(cause, 2 * PREVIEW_CHARACTERS),
        *data,
    ]


def _as_json(letter: Letter, is_replayed: bool) -> dict[str, Any]:
    import json

    from penstock.cli.verbs.record_format import as_json

    shown: dict[str, Any] = json.loads(as_json(letter.message))
    dead = letter.dead
    shown.pop("headers", None)
    shown["replayed"] = is_replayed
    if dead is None:
        return shown
    shown["origin"] = {
        "topic": dead.topic, "partition": dead.partition, "offset": dead.offset,
        "timestamp": dead.timestamp_ms, "group": dead.group,
        "headers": [{"name": name, "value": (value or b"").decode(errors="replace")} for name, value in dead.headers],
    }  # fmt: skip
    shown["failure"] = dead.failure._asdict()
    return shown


def _show_stacks(letters: list[Letter]) -> None:
    for letter in letters:
        if letter.dead is not None:
            number, offset = letter.place
            click.echo(f"\n{number}/{offset}\n{letter.dead.failure.stack.rstrip()}")


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
