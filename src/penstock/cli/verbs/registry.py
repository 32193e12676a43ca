"""penstock registry: the schema registry."""

from __future__ import annotations

import click

from penstock.cli.http_services import extra, log_format, run
from penstock.cli.verbs.common_options import DEFAULT_BOOTSTRAP, given
from penstock.client.property_files import read_properties


@click.command()
@click.option(
    "--config", metavar="FILE", help="Properties, with Confluent's names (schema-registry.properties)."
)
@click.option(
    "-b",
    "--bootstrap-server",
    metavar="HOST:PORT",
    envvar="PENSTOCK_BOOTSTRAP",
    show_envvar=True,
    default=DEFAULT_BOOTSTRAP,
    help="Where the cluster is; kafkastore.bootstrap.servers of the file says it, too.",
)
@click.option(
    "--command-config",
    metavar="FILE",
    help="Properties of the Kafka client, with Kafka's names; kafkastore.* of --config count more.",
)
@click.option("--host", metavar="ADDRESS", help="Listen on this address (0.0.0.0 is all, and the default).")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port (8081; 0 takes a free one).")
@log_format
def registry(
    config: str | None,
    bootstrap_server: str,
    command_config: str | None,
    host: str | None,
    port: int | None,
) -> int:
    """Start a schema registry: schemas by subject and version over HTTP, kept in the topic _schemas.

    Several instances with the same topic and group work together: one leads, the others pass writes on to it.

    \b
    Example:
      penstock registry --port 8081 --bootstrap-server localhost:9092
      curl -X POST -H 'Content-Type: application/vnd.schemaregistry.v1+json' \\
        --data '{"schema": "{\\"type\\": \\"string\\"}"}' http://localhost:8081/subjects/orders-value/versions
    """
    with extra("registry"):
        from penstock.registry.options import PORT, registry_options
        from penstock.registry.service import registry_service
    properties = read_properties(config) if config else {}
    if host is not None or port is not None:
        address = f"[{host}]" if host and ":" in host else host or "0.0.0.0"
        scheme = "https" if properties.get("listeners", "").strip().startswith("https:") else "http"
        properties["listeners"] = f"{scheme}://{address}:{PORT if port is None else port}"
    client = read_properties(command_config) if command_config else {}
    options = registry_options(
        properties, bootstrap=given("bootstrap_server"), client=client, otherwise=bootstrap_server
    )
    return run(lambda: registry_service(options), options.web, warnings=options.warnings)
