"""penstock rest: the REST proxy."""

from __future__ import annotations

import click

from penstock.cli.http_services import extra, log_format, run
from penstock.client.property_files import parse_pairs, read_properties


@click.command()
@click.option(
    "--config", metavar="FILE", help="A properties file, with the names of Kafka REST: kafka-rest.properties."
)
@click.option(
    "--command-config",
    metavar="FILE",
    help="A properties file for the clients, with Kafka's names, such as those of a login.",
)
@click.option("-b", "--bootstrap-server", metavar="HOST:PORT", envvar="PENSTOCK_BOOTSTRAP", show_envvar=True,
              help="Where the cluster is.  [default: localhost:9092]")  # fmt: skip
@click.option(
    "--schema-registry-url", metavar="URL", help="Where the schema registry is, for values with schemas."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Where it listens; 0 is any free port.  [default: 8082]"
)
@click.option("--host", metavar="HOST", help="The address on which it listens.  [default: 0.0.0.0]")
@click.option(
    "--set", "pairs", metavar="NAME=VALUE", multiple=True, help="A property. May be given several times."
)
@log_format
def rest(
    config: str | None,
    command_config: str | None,
    bootstrap_server: str | None,
    schema_registry_url: str | None,
    port: int | None,
    host: str | None,
    pairs: tuple[str, ...],
) -> int:
    """Start the REST proxy: topics, records, groups and administration over HTTP.

    It serves v2 and v3 of Confluent's REST proxy, for Penstock and for Apache Kafka. What the command line says is stronger than
    the file.

    \b
    Example:
      penstock rest --bootstrap-server localhost:9092 --port 8082
      curl -X POST -H "Content-Type: application/vnd.kafka.json.v2+json" \\
        -d '{"records":[{"value":{"amount":7}}]}' http://localhost:8082/topics/orders
    """
    with extra("rest"):
        from penstock.rest.options import load_rest
        from penstock.rest.service import service
    given = read_properties(config) if config else {}
    command = read_properties(command_config) if command_config else {}
    given |= parse_pairs(list(pairs))
    bootstrap = (
        bootstrap_server if not config or "bootstrap.servers" not in given else _said("bootstrap_server")
    )
    if bootstrap or "bootstrap.servers" not in given:
        given["bootstrap.servers"] = bootstrap or command.get("bootstrap.servers") or "localhost:9092"
    if schema_registry_url:
        given["schema.registry.url"] = schema_registry_url
    loaded = load_rest(given, command=command, host=host, port=port)
    return run(lambda: service(loaded), loaded.web, warnings=loaded.warnings)


def _said(option: str) -> str | None:
    """What the command line itself says: a variable of the environment is weaker than the file."""
    from penstock.cli.verbs.common_options import given

    return given(option)
