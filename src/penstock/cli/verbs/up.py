"""penstock up and penstock down: a cluster, and the services around it, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.verbs.stack_place import (
    data_option,
    file_option,
    here,
    located,
    option_of,
    place,
    said,
    words,
)
from penstock.client.errors import UserError
from penstock.stack import brokers
from penstock.stack.composition import ServiceWish, Wish
from penstock.stack.services import SERVICES
from penstock.stack.stack import DEFAULT_DATA, LOOPBACK, Service, Stack

if TYPE_CHECKING:
    from penstock.stack.description.model import Description

only_option = click.option(
    "--only", multiple=True, metavar="NAME", help="Only this one, or all of this service; may be repeated."
)


def _parameter(service: Service, what: str) -> str:
    return f"{service.name}_{what}".replace("-", "_")


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what the table of services brings: how many of each, and where."""
    optional = [
        service.name for service in SERVICES if service.default_count == 0 and service.count_option is None
    ]
    if optional:
        command = click.option(
            "--with",
            "with_services",
            multiple=True,
            type=click.Choice(optional),
            help="Start this one, too; may be repeated.",
        )(command)
    for service in SERVICES:
        command = click.option(
            service.port_option,
            _parameter(service, "port"),
            type=click.IntRange(0, 65535),
            help=_port_help(service),
        )(command)
        if service.count_option is not None:
            command = click.option(
                service.count_option,
                _parameter(service, "count"),
                type=_count_type(service),
                help=f"How many {service.plural} ({service.default_count} in a new directory).",
            )(command)
    return command


def _port_help(service: Service) -> str:
    if max(service.counts) > 1:
        return f"First port of {service.title}, the others follow ({service.port} in a new directory; 0 takes free ones)."
    return f"Port of {service.title} ({service.port} in a new directory; 0 takes a free one)."


def _count_type(service: Service) -> click.ParamType[Any]:
    if isinstance(service.counts, range):
        return click.IntRange(service.counts[0], service.counts[-1])
    return click.Choice([str(count) for count in service.counts])


def _wish(
    host: str | None, settings: tuple[str, ...], chosen: dict[str, Any], *, secure: bool, all_services: bool
) -> Wish:
    asked = {}
    for service in SERVICES:
        count = chosen.get(_parameter(service, "count"))
        if service.name in chosen.get("with_services", ()) or (all_services and _is_in_all(service)):
            count = count or 1
        asked[service.name] = ServiceWish(
            count=int(count) if count is not None else None,
            port=chosen[_parameter(service, "port")],
            settings=settings if settings and service.name == brokers.NAME else None,
        )
    return Wish(asked, host, secure)


def _is_in_all(service: Service) -> bool:
    return service.default_count == 0 and service.is_in_all


@click.command()
@data_option()
@file_option
@service_options
@click.option(
    "--all",
    "all_services",
    is_flag=True,
    help="All services: "
    + ", ".join(service.name for service in SERVICES if _is_in_all(service))
    + ". Not Spark's master, which --with spark starts.",
)
@click.option(
    "--listen",
    "--host",
    "host",
    metavar="ADDRESS",
    help=f"Listen on this address ({LOOPBACK} in a new directory; 0.0.0.0 is all). ZooKeeper stays on {LOOPBACK}.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of every broker.")
@click.option(
    "--secure",
    is_flag=True,
    help="With TLS, logins and access rules. The admin's login is written into DIR/client.properties.",
)
@only_option
@click.option(
    "--foreground",
    is_flag=True,
    help="Stay: start again what dies, tell changes of health, and stop everything at Ctrl-C or SIGTERM.",
)
@click.option("--check", is_flag=True, help="Look whether the file is right, and start nothing.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of such files, for editors.")
def up(
    data: Path | None,
    file: Path | None,
    all_services: bool,
    host: str | None,
    settings: tuple[str, ...],
    secure: bool,
    only: tuple[str, ...],
    foreground: bool,
    check: bool,
    schema: bool,
    **chosen: Any,
) -> int:
    """Start a cluster on this machine: ZooKeeper, brokers, and the services that you ask for with --with, --all or --file.

    Each is a process of its own that goes on by itself. What runs already is left alone; run it again to start
    what has stopped. Each one's process id is in DIR/NAME.pid and its log in DIR/NAME.log, where NAME is
    zookeeper, broker-1, broker-2, registry and so on. A directory remembers its brokers, services, ports and
    options; more brokers and services may join later.

    A file describes all of it, with topics, schemas, connectors and SQL. It is checked as a whole before anything
    starts. Run again, what is new in it is made; what differs and cannot be changed without loss is told; nothing is
    deleted. Where no option says what to start, the penstock.yaml of this folder does.

    \b
    Example:
      penstock up --brokers 3 --data ./cluster
      penstock up --only broker-2 --data ./cluster
      penstock up --brokers 3 --foreground
      penstock up --brokers 3 --secure --data ./cluster
      penstock up --with registry --with rest --data ./cluster
      penstock up --file penstock.yaml
    """
    if schema:
        return _print_schema()
    from penstock.cli.verbs.board import board
    from penstock.cli.verbs.foreground import stay, until_sigterm
    from penstock.stack.start_of_all import StartOfAll
    from penstock.stack.watching import only_watch

    wish = _wish(host, settings, chosen, secure=secure, all_services=all_services)
    description = _description(file, chosen, only)
    if check:
        if description is None:
            raise UserError("there is no file to check: name one with --file")
        click.echo(f"{description.path} is right")
        return 0
    kept = place(data, description.path if description is not None else None)
    start = StartOfAll(kept, wish, description, only)
    if not foreground:
        stack = start.run(board(kept), foreground=False)
        _told(stack, kept)
        return 1 if start.has_failed else 0
    with until_sigterm(), only_watch(kept):
        _told(start.run(board(kept), foreground=True), kept)
        return stay(kept)


def _print_schema() -> int:
    import json

    from penstock.stack.description.json_schema import json_schema

    click.echo(json.dumps(json_schema(SERVICES), indent=2, ensure_ascii=False))
    return 0


def _description(file: Path | None, chosen: dict[str, Any], only: tuple[str, ...]) -> Description | None:
    """What the file says, when there is one. `--only` names members that are there already: it needs no file."""
    from penstock.stack.description.reading import read_description

    described = [name for name in chosen if name.endswith("_count")]
    asked = said("with_services", "settings", "host", *described)
    if file is None:
        ports = [name for name in chosen if name.endswith("_port")]
        if only or asked or said("data", "all_services", "secure", *ports) or (file := here()) is None:
            return None
        click.echo(f"As {file} says:", err=True)
    elif asked:
        raise UserError(f"{option_of(asked[0])} does not go with --file: write it into {file}")
    return read_description(file, SERVICES)


def _told(stack: Stack, data: Path) -> None:
    others = "".join(
        f", {service.title} at {stack.addresses_of(service.name)}"
        for service in SERVICES
        if service.name != brokers.NAME and stack.members_of(service.name)
    )
    click.echo(f"The cluster is at {brokers.bootstrap_of(stack)}{others}, all of it in {stack.directory}.")
    if stack.is_secure:
        _tell_how_to_come_in(stack, data)
    click.echo(f"Look at it: penstock status{words(data)}   Stop it: penstock down{words(data)}")


def _tell_how_to_come_in(stack: Stack, data: Path) -> None:
    from penstock.stack.secured import CLIENT_FILES

    click.echo("It asks for a login. The admin's is in these files, which only you can read:")
    for reader, name in CLIENT_FILES.items():
        click.echo(f"  {stack.directory / name}  ({reader})")
    config = "" if data == Path(DEFAULT_DATA) else f" --command-config {data}/client.properties"
    tool = f"kafka-topics --bootstrap-server {brokers.bootstrap_of(stack)} --command-config {data}/client.properties"
    click.echo("Go on with:")
    click.echo(f"  penstock users set ana{config}")
    click.echo(f"  penstock topics create orders{config}")
    click.echo(f"  {tool} --list")


@click.command()
@located
@only_option
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for their end.",
)
@click.option(
    "--volumes",
    is_flag=True,
    help="Then remove what the stack has kept: records, logs, logins. Files that are not the stack's stay.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before it is removed.")
def down(data: Path, only: tuple[str, ...], timeout_s: float, volumes: bool, yes: bool) -> None:
    """Stop the cluster that `penstock up` started: services first, then brokers, ZooKeeper last. What they keep stays.

    \b
    Example:
      penstock down --data ./cluster
      penstock down --data ./cluster --volumes
    """
    from penstock.cli.verbs.progress import narration
    from penstock.stack.stack_file import locked_stack
    from penstock.stack.stopping import bring_down

    if volumes and only:
        raise UserError("--volumes removes what the whole stack has kept, and does not go with --only")
    if yes and not volumes:
        raise UserError("--yes goes with --volumes: nothing else is asked")
    with locked_stack(data) as stack:
        removal = None
        if volumes:
            from penstock.stack.removal import Removal

            removal = Removal(stack)
            _confirm(removal, yes=yes)
        with narration() as (tell, waiting):
            wanted = stack.chosen(only) or list(stack.members)
            bring_down(stack, wanted, tell=tell, waiting=waiting, timeout_s=timeout_s)
            for sentence in removal.run() if removal is not None else ():
                tell(sentence)


def _confirm(removal: Any, *, yes: bool) -> None:
    """On a terminal somebody is asked; elsewhere nobody can be, so --yes must say it."""
    import sys

    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(f"--volumes removes {removal.summary}: say --yes where nobody can be asked")
    if not click.confirm(f"Stop it, and remove {removal.summary}?", err=True):
        raise click.Abort
