"""penstock apply: what a stack's file says shall be in it, made in a cluster that is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.verbs.common_options import connected, given
from penstock.cli.verbs.stack_place import FILE_NAME
from penstock.client.clients import Connection

if TYPE_CHECKING:
    from penstock.stack.contents.doors import Doors


@click.command()
@click.option(
    "--file",
    "-f",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=FILE_NAME,
    show_default=True,
    metavar="FILE",
    help="The file.",
)
@connected
@click.option("--schema-registry-url", metavar="URL", help="Where the schema registry is.")
@click.option("--connect-url", metavar="URL", help="Where a worker of Connect is.")
@click.option("--sql-url", metavar="URL", help="Where the SQL server is.")
@click.option("--ca", metavar="FILE", help="The authority of https services' certificates, as PEM.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
def apply(
    connection: Connection,
    file: Path,
    schema_registry_url: str | None,
    connect_url: str | None,
    sql_url: str | None,
    ca: str | None,
    dry_run: bool,
) -> int:
    """Make the topics, schemas, SQL statements and connectors of FILE, where they are missing.

    `penstock up` does so for the stack that it starts; this is for a stack in containers, or for any Kafka cluster. What
    is there and differs is changed where that loses nothing, and told otherwise. Nothing is deleted. Addresses that
    are not said are those of a stack on this machine, as the file says.

    \b
    Example:
      penstock apply --file penstock.yaml -b localhost:9092 --dry-run
    """
    from penstock.cli.verbs.board import Board
    from penstock.cli.verbs.progress import narration
    from penstock.stack.contents.applying import Applying, told_end
    from penstock.stack.contents.doors import Doors
    from penstock.stack.description.reading import read_description
    from penstock.stack.services import SERVICES

    description = read_description(file, SERVICES)
    doors = _own_doors(description.data)
    if given("bootstrap_server") is not None or doors is None:
        doors = Doors(connection)
    found = replace(
        doors,
        registry_url=schema_registry_url or doors.registry_url,
        connect_url=connect_url or doors.connect_url,
        sql_url=sql_url or doors.sql_url,
        authority=ca or doors.authority,
    )
    with narration() as (tell, waiting):
        applying = Applying(description, lambda: found, told=Board(tell, waiting, file).told, check=dry_run)
        applying.topics()
        applying.services()
        tell(told_end(applying.outcome, file))
    return 1 if applying.outcome.failed else 0


def _own_doors(data: Path) -> Doors | None:
    """Of the stack that `penstock up` keeps there."""
    from penstock.stack.contents.doors import doors_of
    from penstock.stack.stack_file import read_stack

    stack = read_stack(data)
    return doors_of(stack) if stack is not None else None
