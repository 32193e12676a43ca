"""penstock lake: tables that the lake sink writes."""

from __future__ import annotations

import click

from penstock.cli.connect_start import read_connector
from penstock.cli.http_services import extra
from penstock.client.errors import UserError
from penstock.client.property_files import parse_pairs

MEGABYTE = 1 << 20


@click.group()
def lake() -> None:
    """Keep tables in shape that the lake sink writes."""


@lake.command()
@click.argument("tables", nargs=-1, metavar="[TABLE...]")
@click.option(
    "--connector",
    metavar="FILE",
    help="The configuration of a lake sink: its catalog, and its tables by default.",
)
@click.option(
    "--set", "pairs", metavar="NAME=VALUE", multiple=True,
    help="A property of the catalog, such as uri=… or warehouse=…. May be given several times.",
)  # fmt: skip
@click.option(
    "--target-mb", type=click.IntRange(1), default=128, show_default=True, help="How large files become."
)
@click.option(
    "--least-files", type=click.IntRange(2), default=2, show_default=True,
    help="Leave partitions alone that have fewer small files.",
)  # fmt: skip
def compact(
    tables: tuple[str, ...], connector: str | None, pairs: tuple[str, ...], target_mb: int, least_files: int
) -> int:
    """Put small files of tables together.

    Sinks may go on writing meanwhile. Older snapshots keep the small files until they expire.

    \b
    Example:
      penstock lake compact --connector orders-lake.properties
      penstock lake compact --set uri=sqlite:////data/catalog.db shop.orders
    """
    with extra("connect"):
        from penstock.connect.connectors.lake.compaction import compact_tables
        from penstock.connect.errors import ConnectError, InvalidConfig
    given = read_connector(connector)[1] if connector else {}
    given |= {f"iceberg.catalog.{name}": value for name, value in parse_pairs(list(pairs)).items()}
    try:
        for name, done in compact_tables(
            given, tables, target_bytes=target_mb * MEGABYTE, least_files=least_files
        ):
            became = f"{done.files_before} files became {done.files_after}, {done.rows:,} rows"
            click.echo(f"{name}: {became if done.files_before else 'no small files'}")
    except (InvalidConfig, ConnectError) as error:
        raise UserError(str(error)) from None
    return 0
