"""penstock connect: workers of Connect, standalone and in a group."""

from __future__ import annotations

import click

from penstock.cli.connect_start import start
from penstock.cli.http_services import log_format
from penstock.cli.verbs.common_options import given
from penstock.client.property_files import parse_pairs

_host = click.option(
    "--host", metavar="ADDRESS", help="Listen on this address (0.0.0.0 is all, and the default)."
)
_port = click.option(
    "--port", type=click.IntRange(0, 65535), help="Listen on this port (8083; 0 takes a free one)."
)
_bootstrap = click.option(
    "-b", "--bootstrap-server", metavar="HOST:PORT", envvar="PENSTOCK_BOOTSTRAP", show_envvar=True,
    help="Where the cluster is; bootstrap.servers of the file says it, too.",
)  # fmt: skip
_pairs = click.option(
    "--set",
    "pairs",
    metavar="NAME=VALUE",
    multiple=True,
    help="A property of the worker. May be given several times.",
)


@click.group()
def connect() -> None:
    """Start a worker of Connect: records between topics and other systems.

    It takes the properties, connectors and REST calls of Kafka Connect. `penstock connectors` speaks to it.
    """


@connect.command()
@click.argument("worker", metavar="WORKER.PROPERTIES")
@click.argument("connectors", nargs=-1, metavar="[CONNECTOR.PROPERTIES...]")
@_bootstrap
@_host
@_port
@_pairs
@log_format
def standalone(
    worker: str,
    connectors: tuple[str, ...],
    bootstrap_server: str | None,
    host: str | None,
    port: int | None,
    pairs: tuple[str, ...],
) -> int:
    """Start a worker by itself: connectors from files, tasks in its own process.

    A connector's file has properties, or JSON. How far sources are is kept in the file offset.storage.file.filename.

    \b
    Example:
      penstock connect standalone worker.properties orders-source.properties
    """
    return start(
        worker, connectors, is_standalone=True, pairs=parse_pairs(list(pairs)), bootstrap=bootstrap_server,
        is_said=given("bootstrap_server") is not None, host=host, port=port,
    )  # fmt: skip


@connect.command()
@click.argument("worker", metavar="WORKER.PROPERTIES")
@_bootstrap
@click.option(
    "--master",
    metavar="MASTER",
    help="The Spark master on which tasks run; none: processes.  [default: local]",
)
@_host
@_port
@_pairs
@log_format
def distributed(
    worker: str,
    bootstrap_server: str | None,
    master: str | None,
    host: str | None,
    port: int | None,
    pairs: tuple[str, ...],
) -> int:
    """Start a worker of a group: all with the same group.id share their connectors.

    One leads, and runs each connector as a Spark job whose tasks are the connector's; all answer. When the leader dies another
    one goes on.

    \b
    Example:
      penstock connect distributed worker.properties --port 8083
    """
    if master is not None:
        pairs = (*pairs, f"penstock.connect.master={master}")
    return start(
        worker, is_standalone=False, pairs=parse_pairs(list(pairs)), bootstrap=bootstrap_server,
        is_said=given("bootstrap_server") is not None, host=host, port=port,
    )  # fmt: skip
