"""penstock up and penstock down: a cluster in a box."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.box.composition import DEFAULT_DATA, DEFAULT_PORT, DEFAULT_ZOOKEEPER_PORT, MAX_BROKERS
from penstock.cli.failures import UserError

IN_SYNC_TIMEOUT_S = 10.0

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DATA,
    show_default=True,
    metavar="DIR",
    help="Where the cluster is kept.",
)
only_option = click.option("--only", multiple=True, metavar="NAME", help="Only this one; may be repeated.")


@click.command()
@click.option(
    "--brokers", type=click.IntRange(1, MAX_BROKERS), help="How many brokers (1 in a new directory)."
)
@data_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Of the first broker, the others follow ({DEFAULT_PORT} in a new directory; 0 takes free ones).",
)
@click.option(
    "--zookeeper-port",
    type=click.IntRange(0, 65535),
    help=f"Of ZooKeeper ({DEFAULT_ZOOKEEPER_PORT} in a new directory; 0 takes a free one).",
)
@click.option(
    "--zookeepers", type=click.Choice(["1", "3"]), help="How many ZooKeeper servers (1 in a new directory)."
)
@click.option("--host", metavar="HOST", help="Brokers listen on this address only (all in a new directory).")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of every broker.")
@only_option
def up(
    brokers: int | None,
    data: Path,
    port: int | None,
    zookeeper_port: int | None,
    zookeepers: str | None,
    host: str | None,
    settings: tuple[str, ...],
    only: tuple[str, ...],
) -> None:
    """Start a cluster on this machine: ZooKeeper and brokers, each a process of its own that goes on by itself.

    What runs already is left alone; run it again to start what has stopped. Each one's process id is in
    DIR/NAME.pid and its log in DIR/NAME.log, where NAME is zookeeper, broker-1, broker-2 and so on. A
    directory remembers its brokers, ports and options; more brokers may join later.

    \b
    Example:
      penstock up --brokers 3 --data ./cluster
      penstock up --only broker-2 --data ./cluster
    """
    from penstock.cli.box.composition import Wish, compose, read_box, write_box
    from penstock.cli.box.processes import locked, running_pid
    from penstock.cli.box.restarting import are_in_sync
    from penstock.cli.box.starting import bring_up, check_address, check_ports
    from penstock.cli.verbs.progress import narration

    for setting in settings:
        if "=" not in setting:
            raise UserError(f"--set takes NAME=VALUE, not '{setting}'; for example --set num.partitions=6")
    wish = Wish(
        brokers, port, int(zookeepers) if zookeepers else None, zookeeper_port, host, settings or None
    )
    with locked(data), narration() as (tell, waiting):
        known = read_box(data)
        box = compose(data, known, wish)
        wanted = box.chosen(only) or list(box.members)
        check_address(box, known)
        check_ports(box, wanted)
        # Members before they start, so that they are found again; settings when brokers have started with them.
        starting = box._replace(settings=known.settings if known is not None else ())
        if starting != known:
            write_box(starting)
        try:
            bring_up(box, wanted, tell=tell, waiting=waiting)
            if not are_in_sync(box, waiting=waiting, timeout_s=IN_SYNC_TIMEOUT_S):
                tell("some replicas are behind still; penstock status shows which")
        except (KeyboardInterrupt, UserError):
            if any(running_pid(box, member) is not None for member in box.members):
                click.echo(f"what was started goes on: penstock down{_data_words(data)} stops it", err=True)
            raise
        if box != starting:
            write_box(box)
    click.echo(
        f"The cluster is at {box.bootstrap}, ZooKeeper at {box.connect}, all of it in {box.directory}."
    )
    click.echo(
        "Look at it: penstock status" + _data_words(data) + "   Stop it: penstock down" + _data_words(data)
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
    """Stop the cluster that `penstock up` started: brokers first, ZooKeeper last. What they keep stays.

    \b
    Example:
      penstock down --data ./cluster
    """
    from penstock.cli.box.processes import locked_box
    from penstock.cli.box.stopping import bring_down
    from penstock.cli.verbs.progress import narration

    with locked_box(data) as box, narration() as (tell, waiting):
        wanted = box.chosen(only) or list(box.members)
        bring_down(box, wanted, tell=tell, waiting=waiting, timeout_s=timeout_s)
