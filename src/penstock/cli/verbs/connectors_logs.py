"""penstock connectors logs: what connectors and their tasks write, wherever they run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

import click

from penstock.cli.verbs.common_options import output_option
from penstock.cli.verbs.connectors_asking import asked
from penstock.cli.verbs.output import show_lines
from penstock.client.connect_workers import ConnectWorkers, path_of
from penstock.client.errors import Refused, UserError

POLL_S: Final = 0.5
NOT_FOUND: Final = 404
LINES_AT_ONCE: Final = 1_000
"""As many as a worker keeps."""


@click.command()
@click.argument("name", metavar="CONNECTOR")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=100, show_default=True, help="Begin with the last N."
)
@click.option("--task", type=click.IntRange(min=0), help="Only of this task.")
@output_option
@asked
def logs(workers: ConnectWorkers, name: str, follow: bool, lines: int, task: int | None, output: str) -> None:
    """Show what a connector and its tasks wrote, wherever they run.

    The worker that leads keeps the last thousand lines of each connector; another leader begins anew. Kafka Connect's
    workers have no such thing.

    \b
    Example:
      penstock connectors logs orders -n 20
      penstock connectors logs orders -f
    """
    found = _lines(workers, name, follow=follow, lines=lines, task=task)
    show_lines(output, found, lambda line: click.echo(_text(line)), document=dict)


def _lines(
    workers: ConnectWorkers, name: str, *, follow: bool, lines: int, task: int | None
) -> Iterator[dict[str, Any]]:
    query: dict[str, int] = {"lines": lines, **({} if task is None else {"task": task})}
    while True:
        try:
            found = workers.get(path_of(name, f"logs?{urlencode(query)}"))
        except Refused as error:
            if error.code == NOT_FOUND and "HTTP 404" in str(error):
                raise UserError(
                    "this worker keeps no logs for others: Kafka Connect's do not, see its own log"
                ) from None
            raise
        yield from found["lines"]
        if not follow:
            return
        query |= {"lines": LINES_AT_ONCE, "after": found["last"]}
        time.sleep(POLL_S)


def _text(line: dict[str, Any]) -> str:
    when = datetime.fromtimestamp(line["time_ms"] / 1000).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    who = "connector" if line["task"] is None else f"task {line['task']}"
    return f"{when} {line['level']} {who}: {line['text']}"
