"""penstock cluster: the cluster and its brokers, and what is done to them while it serves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.verbs.common_options import connected, given, output_option
from penstock.cli.verbs.output import Column, as_json, cells, console, show, show_table
from penstock.client.clients import Connection
from penstock.model.endpoints import Address
from penstock.stack.stack import DEFAULT_DATA

if TYPE_CHECKING:
    from penstock.admin.facets.brokers import Broker

F = TypeVar("F", bound=Callable[..., Any])


@click.group(invoke_without_command=True)
@output_option
@connected
@click.pass_context
def cluster(context: click.Context, connection: Connection, output: str) -> None:
    """Show the cluster's id, its controller and its brokers; or do one of the commands below.

    What moves replicas can be interrupted: the cluster goes on with what is under way, and the same command
    again goes on with the rest.

    \b
    Example:
      penstock cluster -o json
      penstock cluster drain 2
    """
    if context.invoked_subcommand is None:
        _show(connection, output)


BROKERS: list[Column[Broker]] = [
    Column("id", lambda one: one.id, "broker"),
    Column("host", lambda one: one.host, None),
    Column("port", lambda one: one.port, None),
    Column(None, lambda one: Address(one.host, one.port), "address"),
    Column("rack", lambda one: one.rack, cell=lambda one: one.rack or ""),
]


def _show(connection: Connection, output: str) -> None:
    from penstock.admin import Cluster

    with Cluster.over(connection) as cluster:
        found = cluster.brokers.describe()
    role: Column[Broker] = Column(
        None, lambda one: "controller" if one.id == found.controller else "", heading=" "
    )

    def draw() -> None:
        console().print(f"cluster [bold]{found.cluster_id}[/bold]")
        show_table(*cells(found.brokers, [*BROKERS, role]))

    def document() -> dict[str, object]:
        brokers = [as_json(one, BROKERS) for one in found.brokers]
        return {"cluster_id": found.cluster_id, "controller": found.controller, "brokers": brokers}

    show(output, document, draw)


def moving(command: F) -> F:
    """Adds what commands that move replicas have: --throttle and --at-once."""
    decorated = click.option(
        "--at-once",
        type=click.IntRange(min=1),
        default=50,
        show_default=True,
        metavar="N",
        help="Move so many partitions at a time.",
    )(command)
    return click.option(
        "--throttle",
        type=click.IntRange(min=1024),
        metavar="BYTES",
        help="Brokers send each other at most so much for it, in bytes per second.",
    )(decorated)


@cluster.command()
@click.argument("broker", type=click.IntRange(min=0))
@moving
@connected
def drain(connection: Connection, broker: int, throttle: int | None, at_once: int) -> None:
    """Move every partition that BROKER keeps to the others. It stays in the cluster, empty.

    \b
    Example:
      penstock cluster drain 2 --throttle 50000000
    """
    _drain(connection, broker, throttle, at_once)


def _drain(connection: Connection, broker: int, throttle: int | None, at_once: int) -> None:
    from penstock.admin import Cluster
    from penstock.cli.verbs.moving import moved

    with Cluster.over(connection) as cluster:
        moved(
            lambda show: cluster.moves.drain(broker, throttle=throttle, at_once=at_once, show=show),
            f"broker {broker} keeps nothing any more",
        )


@cluster.command()
@click.argument("broker", type=click.IntRange(min=0))
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The directory of penstock up: the broker is stopped there, too, and will not be started again.",
)
@moving
@connected
def remove(
    connection: Connection, broker: int, data: Path | None, throttle: int | None, at_once: int
) -> None:
    """Take BROKER out of the cluster: move what it keeps to the others, then stop it.

    \b
    Example:
      penstock cluster remove 3 --data ./cluster
    """
    from penstock.cli.verbs.output import say

    name = f"broker-{broker}"
    if data is not None:
        from penstock.stack.brokers import bootstrap_of, connection_to
        from penstock.stack.stack_file import existing_stack

        known = existing_stack(data)
        known.member(name)
        # The broker that is drained must be the one that is stopped, wherever other commands go by the environment.
        if given("bootstrap_server") is None:
            properties = connection.properties
            connection = Connection(bootstrap_of(known), properties) if properties else connection_to(known)
    _drain(connection, broker, throttle, at_once)
    if data is None:
        say(f"broker {broker} can be stopped now, for good")
        return
    from penstock.cli.verbs.progress import narration
    from penstock.stack.stack_file import locked_stack
    from penstock.stack.stopping import take_out

    # Read again: the stack may have grown in the time that the drain took.
    with locked_stack(data) as stack, narration() as (tell, waiting):
        take_out(stack, stack.member(name), tell=tell, waiting=waiting)


@cluster.command()
@click.argument("broker", type=click.IntRange(min=0))
@click.option(
    "--with",
    "substitute",
    type=click.IntRange(min=0),
    required=True,
    metavar="ID",
    help="The broker that takes its place; it must run already.",
)
@moving
@connected
def replace(connection: Connection, broker: int, substitute: int, throttle: int | None, at_once: int) -> None:
    """Put another broker into the place of BROKER, which may be dead: it gets all that BROKER keeps.

    \b
    Example:
      penstock cluster replace 2 --with 4
    """
    from penstock.admin import Cluster
    from penstock.cli.verbs.moving import moved

    with Cluster.over(connection) as cluster:
        moved(
            lambda show: cluster.moves.replace(
                broker, substitute=substitute, throttle=throttle, at_once=at_once, show=show
            ),
            f"broker {substitute} keeps what broker {broker} kept",
        )


@cluster.command()
@click.option("--rolling", is_flag=True, required=True, help="One broker after the other.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DATA,
    show_default=True,
    metavar="DIR",
    help="The directory of penstock up.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Only this broker; may be repeated.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long replicas may take to be in sync again.",
)
def restart(rolling: bool, data: Path, only: tuple[str, ...], timeout_s: float) -> None:
    """Restart the brokers of a cluster that `penstock up` started, while it serves.

    The next broker is stopped only when every replica is in sync again. Partitions with one replica are away
    for the moment in which their broker is. With --only, other brokers that do not run stay so.

    \b
    Example:
      penstock cluster restart --rolling --data ./cluster
    """
    from penstock.cli.verbs.progress import narration
    from penstock.client.errors import UserError
    from penstock.stack.brokers import NAME as BROKER
    from penstock.stack.restarting import restart_rolling
    from penstock.stack.stack_file import locked_stack

    if given("bootstrap_server") is not None:
        raise UserError("cluster restart goes by --data and not by -b: it restarts what penstock up started")
    with locked_stack(data) as stack, narration() as (tell, waiting):
        chosen = stack.chosen(only) or stack.members_of(BROKER)
        for member in chosen:
            if member.service != BROKER:
                raise UserError(
                    f"{member.name} is no broker: penstock down and up --only {member.name} restart it"
                )
        restart_rolling(stack, chosen, tell=tell, waiting=waiting, timeout_s=timeout_s)
