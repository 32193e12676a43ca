"""ksql: the prompt for a SQL server, with ksqlDB's options."""

from __future__ import annotations

import shutil
import sys

import click

from penstock.cli.ksql.own_commands import run_lines
from penstock.cli.ksql.session import JSON, TABULAR, Session
from penstock.client.errors import Unreachable, UserError
from penstock.sql.client.configured import Configured
from penstock.sql.client.service import ServerRefused, SqlServer

DEFAULT_URL = "http://localhost:8088"
MISSING_EXTRA = "ksql needs more packages: pip install 'penstock[sql]'"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("server", default=DEFAULT_URL)
@click.option("-e", "--execute", metavar="STATEMENTS", help="Run these statements, and leave.")
@click.option("-f", "--file", "script", metavar="FILE", help="Run the statements of a file, and leave.")
@click.option(
    "-d", "--define", "definitions", metavar="NAME=VALUE", multiple=True, help="A variable: ${NAME}."
)
@click.option("--output", type=click.Choice([TABULAR, JSON], case_sensitive=False), default=TABULAR,
              help="The form of results.  [default: TABULAR]")  # fmt: skip
@click.option("--query-row-limit", type=click.IntRange(1), help="A query ends after so many rows.")
@click.option(
    "--query-timeout", type=click.IntRange(1), metavar="MS", help="A query ends after so many milliseconds."
)
@click.option("-u", "--user", help="The user of a login.")
@click.option("-p", "--password", help="The password. Better: KSQL_PASSWORD.", envvar="KSQL_PASSWORD")
@click.option("-t", "--token", help="A bearer token as the login.")
@click.option("--confluent-api-key", "key", hidden=True)
@click.option("--confluent-api-secret", "secret", hidden=True)
@click.option("--config-file", metavar="FILE",
              help="Properties for every statement; of a client's file its login and ssl.….")  # fmt: skip
def ksql(
    server: str,
    execute: str | None,
    script: str | None,
    definitions: tuple[str, ...],
    output: str,
    query_row_limit: int | None,
    query_timeout: int | None,
    user: str | None,
    password: str | None,
    token: str | None,
    key: str | None,
    secret: str | None,
    config_file: str | None,
) -> int:
    """The prompt of SQL over topics: streams, tables, and queries that go on.

    \b
    Examples:
      ksql http://localhost:8088
      ksql --execute 'SHOW STREAMS;' --output JSON
      ksql --file pipeline.sql --define topic=orders
    """
    configured = Configured.read(config_file) if config_file else Configured()
    user, password = user or key, password or secret
    if not (user or token):
        user, password = configured.login
    session = Session(
        SqlServer(server, user=user, password=password, token=token, context=configured.context),
        output=output.upper(),
        width=shutil.get_terminal_size().columns,
        row_limit=query_row_limit,
        timeout_ms=query_timeout,
        show=click.echo,
    )
    session.properties |= configured.properties
    for definition in definitions:
        name, equals, value = definition.partition("=")
        if not equals:
            raise UserError(f"--define takes NAME=VALUE, and not '{definition}'")
        session.variables[name] = value.strip("'")
    try:
        if execute is not None:
            session.run(execute)
            return 0
        if script is not None:
            session.run_file(script)
            return 0
        if not sys.stdin.isatty():
            run_lines(sys.stdin, session)
            return 0
        return _prompted(session)
    except ServerRefused as error:
        print(str(error), file=sys.stderr)
        return 1


def _prompted(session: Session) -> int:
    try:
        from penstock.cli.ksql.prompt import banner, prompt
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("penstock"):
            raise
        raise UserError(MISSING_EXTRA) from None
    try:
        banner(session)
    except Unreachable as error:
        print(str(error), file=sys.stderr)
    return prompt(session)
