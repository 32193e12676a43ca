"""penstock mirror: the flows of an mm2.properties, in this process."""

from __future__ import annotations

import click

from penstock.cli.http_services import log_format
from penstock.cli.mirror_start import STATUS_S, run
from penstock.client.property_files import parse_pairs


@click.command()
@click.argument("properties", metavar="MM2.PROPERTIES")
@click.option(
    "--clusters",
    metavar="NAMES",
    help="Only flows into these clusters, with commas between them: those that are near.",
)
@click.option(
    "--set", "pairs", metavar="NAME=VALUE", multiple=True, help="A property. May be given several times."
)
@click.option(
    "--status", "status_s", type=click.FloatRange(min=0), default=STATUS_S, show_default=True, metavar="SECONDS",
    help="How often each flow is told in a line; 0: never.",
)  # fmt: skip
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), metavar="N",
    help="Serve metrics for Prometheus on this port; 0 takes a free one. Default: not at all.",
)  # fmt: skip
@log_format
def mirror(
    properties: str, clusters: str | None, pairs: tuple[str, ...], status_s: float, metrics_port: int | None
) -> int:
    """Keep topics, groups and access rules of clusters in other clusters: MirrorMaker 2's job, with its properties.

    Runs until Ctrl-C. How far it is is kept in the target clusters: started again it goes on, and so does MirrorMaker 2.

    \b
    Example of a file:
      clusters = A, B
      A.bootstrap.servers = localhost:9092
      B.bootstrap.servers = localhost:9093
      A->B.enabled = true
    """
    named = (clusters or "").replace(",", " ").split()
    return run(properties, named, parse_pairs(list(pairs)), status_s, metrics_port=metrics_port)
