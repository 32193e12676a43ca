"""penstock up and penstock down: a cluster, and the services around it, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from penstock.client.errors import UserError
from penstock.stack import brokers
from penstock.stack.composition import ServiceWish, Wish
from penstock.stack.services import SERVICES
from penstock.stack.stack import DEFAULT_DATA, LOOPBACK, Service, Stack, Tell

IN_SYNC_TIMEOUT_S = 10.0

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DATA,
    show_default=True,
    metavar="DIR",
    help="Where the cluster is kept.",
)
only_option = click.option(
    "--only", multiple=True, metavar="NAME", help="Only this one, or all of this service; may be repeated."
)


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what the table of services brings: how many of each, and where."""
    optional = [service.name for service in SERVICES if service.default_count == 0]
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
            f"{service.name}_port",
            type=click.IntRange(0, 65535),
            help=_port_help(service),
        )(command)
        if service.count_option is not None:
            command = click.option(
                service.count_option,
                f"{service.name}_count",
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


def _wish(host: str | None, settings: tuple[str, ...], chosen: dict[str, Any], *, secure: bool) -> Wish:
    asked = {}
    for service in SERVICES:
        count = chosen.get(f"{service.name}_count")
        if service.name in chosen.get("with_services", ()):
            count = 1
        asked[service.name] = ServiceWish(
            count=int(count) if count is not None else None,
            port=chosen[f"{service.name}_port"],
            settings=settings if settings and service.name == brokers.NAME else None,
        )
    return Wish(asked, host, secure)


@click.command()
@data_option
@service_options
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
def up(
    data: Path,
    host: str | None,
    settings: tuple[str, ...],
    secure: bool,
    only: tuple[str, ...],
    foreground: bool,
    **chosen: Any,
) -> int:
    """Start a cluster on this machine: ZooKeeper, brokers, and the services that you ask for with --with.

    Each is a process of its own that goes on by itself. What runs already is left alone; run it again to start
    what has stopped. Each one's process id is in DIR/NAME.pid and its log in DIR/NAME.log, where NAME is
    zookeeper, broker-1, broker-2, registry and so on. A directory remembers its brokers, services, ports and
    options; more brokers and services may join later.

    \b
    Example:
      penstock up --brokers 3 --data ./cluster
      penstock up --only broker-2 --data ./cluster
      penstock up --brokers 3 --foreground
      penstock up --brokers 3 --secure --data ./cluster
      penstock up --with registry --with rest --data ./cluster
    """
    from penstock.cli.verbs.foreground import stay, until_sigterm
    from penstock.stack.watching import only_watch

    wish = _wish(host, settings, chosen, secure=secure)
    if not foreground:
        _told(_brought_up(data, wish, only, foreground=False), data)
        return 0
    with until_sigterm(), only_watch(data):
        _told(_brought_up(data, wish, only, foreground=True), data)
        return stay(data)


def _brought_up(data: Path, wish: Wish, only: tuple[str, ...], *, foreground: bool) -> Stack:
    """`foreground`: what this command starts ends with it, also where it fails."""
    from penstock.cli.verbs.progress import narration
    from penstock.stack.stack_file import locked
    from penstock.stack.starting import running, stopped
    from penstock.stack.stopping import bring_down

    with locked(data), narration() as (tell, waiting):
        stack = _composed(data, wish, only)
        ours = stopped(stack, stack.members)
        try:
            _bring_up(stack, only, tell=tell, waiting=waiting)
        except (KeyboardInterrupt, UserError):
            if foreground:
                bring_down(stack, running(stack, ours), tell=tell, waiting=waiting)
            elif running(stack, stack.members):
                click.echo(f"what was started goes on: penstock down{_data_words(data)} stops it", err=True)
            raise
    return stack


def _told(stack: Stack, data: Path) -> None:
    others = "".join(
        f", {service.title} at {stack.addresses_of(service.name)}"
        for service in SERVICES
        if service.name != brokers.NAME and stack.members_of(service.name)
    )
    click.echo(f"The cluster is at {brokers.bootstrap_of(stack)}{others}, all of it in {stack.directory}.")
    if stack.is_secure:
        _tell_how_to_come_in(stack, data)
    click.echo(
        "Look at it: penstock status" + _data_words(data) + "   Stop it: penstock down" + _data_words(data)
    )


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


def _composed(data: Path, wish: Wish, only: tuple[str, ...]) -> Stack:
    """The stack as it shall be, checked and written, so that its members are found again whatever happens."""
    from penstock.stack.composition import compose
    from penstock.stack.secured import protect
    from penstock.stack.stack_file import read_stack, write_stack
    from penstock.stack.starting import check_address, check_ports

    known = read_stack(data)
    stack = compose(data, known, wish, SERVICES)
    protect(stack)
    check_address(stack, known)
    check_ports(stack, stack.chosen(only) or list(stack.members))
    # Members before they start; settings when brokers have started with them.
    starting = stack._replace(settings=known.settings if known is not None else {})
    if starting != known:
        write_stack(starting)
    return stack


def _bring_up(stack: Stack, only: tuple[str, ...], *, tell: Tell, waiting: Tell) -> None:
    from penstock.stack.restarting import who_is_behind
    from penstock.stack.stack_file import read_stack, write_stack
    from penstock.stack.starting import bring_up, running

    wanted = stack.chosen(only) or list(stack.members)
    written = read_stack(stack.directory)
    ran = running(stack, stack.members_of(brokers.NAME))
    bring_up(stack, wanted, tell=tell, waiting=waiting)
    for behind in who_is_behind(stack, waiting=waiting, timeout_s=IN_SYNC_TIMEOUT_S):
        tell(f"{behind} yet; penstock status shows more")
    if written != stack:
        write_stack(stack)
        if ran:
            names = ", ".join(member.name for member in ran)
            tell(
                f"{names} ran already, with the options of before: penstock cluster restart --rolling changes that"
            )


def _data_words(data: Path) -> str:
    return "" if data == Path(DEFAULT_DATA) else f" --data {data}"


@click.command()
@data_option
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
def down(data: Path, only: tuple[str, ...], timeout_s: float) -> None:
    """Stop the cluster that `penstock up` started: services first, then brokers, ZooKeeper last. What they keep stays.

    \b
    Example:
      penstock down --data ./cluster
    """
    from penstock.cli.verbs.progress import narration
    from penstock.stack.stack_file import locked_stack
    from penstock.stack.stopping import bring_down

    with locked_stack(data) as stack, narration() as (tell, waiting):
        wanted = stack.chosen(only) or list(stack.members)
        bring_down(stack, wanted, tell=tell, waiting=waiting, timeout_s=timeout_s)
