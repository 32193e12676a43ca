"""penstock connectors offsets: show, alter, reset."""

from __future__ import annotations

import json
from typing import Any

import click

from penstock.cli.verbs.common_options import output_option, yes_option
from penstock.cli.verbs.connectors_asking import asked
from penstock.cli.verbs.output import Column, confirm, say, show_rows
from penstock.client.connect_workers import ConnectWorkers, path_of
from penstock.client.errors import UserError


@click.group()
def offsets() -> None:
    """See how far connectors are; send them elsewhere, while they are stopped.

    \b
    Example:
      penstock connectors offsets show orders
    """


@offsets.command("show")
@click.argument("name", metavar="CONNECTOR")
@output_option
@asked
def show_offsets(workers: ConnectWorkers, name: str, output: str) -> None:
    """Show how far a connector is.

    \b
    Example:
      penstock connectors offsets show orders
    """
    found = workers.get(path_of(name, "offsets"))["offsets"]
    show_rows(output, found, [
        Column("partition", lambda one: one["partition"], cell=lambda one: _compact(one["partition"])),
        Column("offset", lambda one: one["offset"], cell=lambda one: _compact(one["offset"])),
    ], empty=f"{name} has no offsets")  # fmt: skip


@offsets.command("alter")
@click.argument("name", metavar="CONNECTOR")
@click.option("--partition", metavar="JSON", help='Of the source or sink: {"filename": "/tmp/a"}.')
@click.option("--offset", metavar="JSON", help='Where it goes on: {"position": 0}; null takes it away.')
@click.option("-f", "--file", metavar="FILE", help="Several, as `show -o json` prints them.")
@yes_option
@asked
def alter_offsets(
    workers: ConnectWorkers, name: str, partition: str | None, offset: str | None, file: str | None, yes: bool
) -> None:
    """Say where a stopped connector goes on.

    \b
    Example:
      penstock connectors offsets alter orders --partition '{"filename": "/tmp/a"}' --offset '{"position": 0}'
    """
    if file:
        from penstock.client.property_files import read_text

        found = _json(read_text(file), file)
        changes = found.get("offsets") if isinstance(found, dict) else found
    elif partition and offset:
        changes = [{"partition": _json(partition, "--partition"), "offset": _json(offset, "--offset")}]
    else:
        raise UserError("say --partition and --offset, or --file")
    confirm(f"Change {len(changes or ())} offsets of {name}?", yes=yes)
    say(workers.ask("PATCH", path_of(name, "offsets"), {"offsets": changes})["message"])


@offsets.command("reset")
@click.argument("name", metavar="CONNECTOR")
@yes_option
@asked
def reset_offsets(workers: ConnectWorkers, name: str, yes: bool) -> None:
    """Let a stopped connector begin anew.

    \b
    Example:
      penstock connectors offsets reset orders
    """
    confirm(f"Let {name} begin anew?", yes=yes)
    say(workers.ask("DELETE", path_of(name, "offsets"))["message"])


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{what} is no JSON: {error}") from None


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
