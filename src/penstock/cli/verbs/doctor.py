"""penstock doctor: what is wrong or unwise in a cluster or a stack, with the command that mends it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.verbs.common_options import DEFAULT_BOOTSTRAP, given, output_option
from penstock.stack.stack import DEFAULT_DATA

if TYPE_CHECKING:
    from penstock.advice.doctor import ServiceFacts
    from penstock.client.clients import Connection
    from penstock.stack.stack import Stack

FAILS = ("error", "warning", "note", "never")


class _Doctor(click.Command):
    """Its help lists the checks."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Checks"):
            from penstock.advice.doctor.checks import ALL

            formatter.write_dl([(check.name, check.what) for check in ALL])


@click.command(cls=_Doctor)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"The stack that penstock up keeps there ({DEFAULT_DATA} if there is one): its members are looked at, too.",
)
@click.option(
    "-b",
    "--bootstrap-server",
    metavar="HOST:PORT",
    envvar="PENSTOCK_BOOTSTRAP",
    show_envvar=True,
    help=f"Any cluster, by the address of a broker ({DEFAULT_BOOTSTRAP} if there is no DIR).",
)
@click.option(
    "--command-config", metavar="FILE", help="A properties file for the client, with Kafka's names."
)
@click.option("--only", multiple=True, metavar="CHECK", help="Only this check; may be repeated.")
@click.option(
    "--watch",
    "look_s",
    type=click.FloatRange(min=0, max=3600),
    default=6.0,
    show_default=True,
    metavar="SECONDS",
    help="The pause between two looks, by which rates are known; 0 looks once.",
)
@click.option(
    "--fail-on",
    type=click.Choice(FAILS),
    default="error",
    show_default=True,
    help="End with 1 when something of this severity, or worse, is found.",
)
@output_option
def doctor(
    data: Path | None,
    bootstrap_server: str | None,
    command_config: str | None,
    only: tuple[str, ...],
    look_s: float,
    fail_on: str,
    output: str,
) -> int:
    """Say what is wrong or unwise in a cluster or a stack: each finding with evidence and the command that mends it.

    The cluster may be Apache Kafka's. Nothing is changed and no record is read. Ends with 0 when nothing of severity
    error is found, and with 1 otherwise; --fail-on says what counts.

    \b
    Example:
      penstock doctor
      penstock doctor -b localhost:9092 --only min-isr --only lag -o json
    """
    from penstock.advice.doctor import examine
    from penstock.cli.verbs.findings import document, draw, placed
    from penstock.cli.verbs.output import show
    from penstock.cli.verbs.progress import narration

    if data is not None:  # which says it more exactly than the environment
        bootstrap_server = given("bootstrap_server")
    stack = _stack(data, bootstrap_server)
    connection = _connection(stack, bootstrap_server, command_config)
    with narration() as (_, waiting):
        found = examine(connection, only=only, look_s=look_s, services=_services(stack), tell=waiting)
    there = placed(found, connection, command_config or _login_of(stack, bootstrap_server))
    show(
        output,
        lambda: [document(one) for one in there],
        lambda: draw(there, nothing="all checks passed"),
    )
    return int(
        fail_on != "never" and any(FAILS.index(one.severity.value) <= FAILS.index(fail_on) for one in found)
    )


def _stack(data: Path | None, bootstrap: str | None) -> Stack | None:
    from penstock.stack.stack_file import existing_stack, read_stack

    if data is not None:
        return existing_stack(data)
    return read_stack(Path(DEFAULT_DATA)) if bootstrap is None else None


def _connection(stack: Stack | None, bootstrap: str | None, config: str | None) -> Connection:
    from penstock.client.clients import Connection
    from penstock.client.property_files import read_properties
    from penstock.stack.brokers import bootstrap_of, connection_to

    if stack is not None and bootstrap is None and config is None:
        return connection_to(stack)
    properties = read_properties(config) if config else {}
    address = bootstrap or (bootstrap_of(stack) if stack is not None else properties.get("bootstrap.servers"))
    return Connection(address or DEFAULT_BOOTSTRAP, properties)


def _login_of(stack: Stack | None, bootstrap: str | None) -> str | None:
    """The file with the admin's login that a secured stack has."""
    if stack is None or bootstrap is not None or not stack.is_secure:
        return None
    return str(stack.directory / "client.properties")


def _services(stack: Stack | None) -> list[ServiceFacts]:
    from penstock.advice.doctor import ServiceFacts
    from penstock.stack.reports import member_reports

    if stack is None:
        return []
    return [ServiceFacts(one.name, one.problem, str(stack.directory)) for one in member_reports(stack)]
