"""penstock sql-server: streams and tables in SQL, with ksqlDB's REST API."""

from __future__ import annotations

import click

from penstock.cli.http_services import extra, log_format, run
from penstock.cli.verbs.common_options import given as said
from penstock.client.property_files import parse_pairs, read_properties


@click.command()
@click.option(
    "--config", metavar="FILE", help="A properties file, with the names of ksqlDB: ksql-server.properties."
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
@click.option("--connect-url", metavar="URL", help="Where Connect is, for statements about connectors.")
@click.option("--master", metavar="MASTER", help="The Spark master on which queries run.  [default: local]")
@click.option("--data", metavar="DIR", help="A folder for what the server can make again.")
@click.option("--queries-file", metavar="FILE", help="Statements that run at the start; no others are taken.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Where it listens; 0 is any free port.  [default: 8088]"
)
@click.option("--host", metavar="HOST", help="The address on which it listens.  [default: 0.0.0.0]")
@click.option(
    "--set", "pairs", metavar="NAME=VALUE", multiple=True, help="A property. May be given several times."
)
@log_format
def sql_server(
    config: str | None,
    command_config: str | None,
    bootstrap_server: str | None,
    schema_registry_url: str | None,
    connect_url: str | None,
    master: str | None,
    data: str | None,
    queries_file: str | None,
    port: int | None,
    host: str | None,
    pairs: tuple[str, ...],
) -> int:
    """Start the SQL server: streams, tables and continuous queries over topics.

    It has the statements and the REST API of ksqlDB, for Penstock and for Apache Kafka; its queries run on Spark. What the
    command line says is stronger than the file.

    \b
    Example:
      penstock sql-server --bootstrap-server localhost:9092 --port 8088
      ksql http://localhost:8088
    """
    with extra("sql", command="sql-server"):
        from penstock.sql.engine.options import sql_options
        from penstock.sql.server.service import sql_service
        from penstock.sql.starting import engine_of
    given = read_properties(config) if config else {}
    command = read_properties(command_config) if command_config else {}
    given |= parse_pairs(list(pairs))
    for name, value in (
        ("ksql.schema.registry.url", schema_registry_url),
        ("ksql.connect.url", connect_url),
        ("penstock.sql.master", master),
        ("penstock.sql.data", data),
        ("ksql.queries.file", queries_file),
    ):
        if value:
            given[name] = value
    # A variable of the environment is weaker than the file.
    bootstrap = bootstrap_server if "bootstrap.servers" not in given else said("bootstrap_server")
    options = sql_options(given, bootstrap=bootstrap, client=command, host=host, port=port)
    return run(lambda: sql_service(engine_of(options)), options.web, warnings=options.warnings)
