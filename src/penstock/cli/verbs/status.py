"""penstock status: is the cluster healthy?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from penstock.admin.health import Health, PartitionState
from penstock.cli.verbs.common_options import (
    DEFAULT_BOOTSTRAP,
    NOT_ALLOWED,
    given,
    output_option,
    with_way_out,
)
from penstock.cli.verbs.stack_place import place
from penstock.client.errors import Refused, Unreachable
from penstock.stack.reports import MemberReport, member_reports
from penstock.stack.stack import DEFAULT_DATA, Stack

SHOWN_PARTITIONS = 20
SHOWN_TOPICS = 10
MEBIBYTE = 1024 * 1024


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"The cluster that penstock up keeps there ({DEFAULT_DATA}, or what a penstock.yaml here says, if there is one).",
)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The same, by the file that describes it.",
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
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
@output_option
def status(
    data: Path | None,
    file: Path | None,
    bootstrap_server: str | None,
    command_config: str | None,
    as_json: bool,
    output: str,
) -> int:
    """Show services with their health, brokers, controller, leader skew, and partitions that are under-replicated, offline,
    below min ISR or damaged, or of which there are only strays.

    Ends with 0 when the cluster is healthy and with 1 when it is not, so that scripts can wait for it.

    \b
    Example:
      penstock status
      penstock status -b localhost:9092 --json
    """
    from penstock.admin.health import examine
    from penstock.cli.verbs.output import show
    from penstock.client.clients import Connection
    from penstock.client.cluster_client import ClusterClient
    from penstock.client.property_files import read_properties
    from penstock.stack.brokers import bootstrap_of, connection_to

    if data is None and file is not None:
        data = place(None, file)
    if data is not None:  # which says it more exactly than the environment
        bootstrap_server = given("bootstrap_server")
    stack = _stack(data, bootstrap_server)
    address = bootstrap_server or (bootstrap_of(stack) if stack is not None else DEFAULT_BOOTSTRAP)
    members = member_reports(stack) if stack is not None else []
    health: Health | None = None
    problem: str | None = None
    try:
        if stack is not None and bootstrap_server is None and command_config is None:
            connection = connection_to(stack)
        else:
            properties = read_properties(command_config) if command_config else {}
            if bootstrap_server is None and stack is None:
                address = properties.get("bootstrap.servers", address)
            connection = Connection(address, properties)
        with ClusterClient(connection) as client:
            health = examine(client)
    except (Unreachable, Refused) as error:
        problem = str(error)
        if isinstance(error, Refused) and error.code in NOT_ALLOWED:
            problem = str(with_way_out(error, connection))
        if stack is not None and isinstance(error, Unreachable):
            problem = f"no broker answers: penstock up --data {stack.directory} starts what does not run"
    is_healthy = health is not None and health.is_healthy and all(one.healthy for one in members)

    def draw() -> None:
        _show(members, health)
        if problem is not None:
            raise Unreachable(problem)

    def document() -> dict[str, Any]:
        services = [member._asdict() for member in members]
        return {"healthy": is_healthy, "problem": problem, "services": services, **_as_json(health)}

    show("json" if as_json else output, document, draw)
    return 0 if is_healthy else 1


def _stack(data: Path | None, bootstrap: str | None) -> Stack | None:
    from penstock.stack.stack_file import existing_stack, read_stack

    if data is not None:
        return existing_stack(data)
    return read_stack(place(None, None)) if bootstrap is None else None


def _as_json(health: Health | None) -> dict[str, Any]:
    from penstock.model.ids import id_text

    if health is None:
        return {}
    return {
        "cluster_id": health.cluster_id,
        "controller": health.controller,
        "brokers": [broker._asdict() for broker in health.brokers],
        "missing_brokers": health.missing_brokers,
        "partitions": health.num_partitions,
        "leader_skew": round(health.leader_skew, 3),
        "not_preferred": [_partition(state) for state in health.not_preferred],
        "under_replicated": [_partition(state) for state in health.under_replicated],
        "offline": [_partition(state) for state in health.offline],
        "below_min_isr": [_partition(state) for state in health.below_min_isr],
        "damaged": [
            {
                "topic": damage.partition.topic,
                "partition": damage.partition.partition,
                "broker": damage.broker,
                "offset": damage.offset,
                "cause": damage.cause,
                "seen_by": damage.seen_by,
            }
            for damage in health.told.damaged
        ],
        "strays": [{"broker": broker, "count": count} for broker, count in health.told.strays_of_each],
        "lost": [
            {
                "topic": topic.name,
                "topic_id": id_text(topic.topic_id),
                "partitions": topic.lost,
                "brokers": topic.brokers,
            }
            for topic in health.lost
        ],
        "failed_directories": [failed._asdict() for failed in health.told.failed_directories],
        "without_session": [
            {"broker": broker, "trouble": trouble} for broker, trouble in health.told.without_session
        ],
        "disagreeing": [view._asdict() for view in health.told.disagreeing],
    }


def _partition(state: PartitionState) -> dict[str, Any]:
    return {
        "topic": state.partition.topic,
        "partition": state.partition.partition,
        "leader": state.leader,
        "replicas": state.replicas,
        "isr": state.isr,
    }


def _show(members: list[MemberReport], health: Health | None) -> None:
    from penstock.cli.verbs.output import console, show_table

    if members:
        rows_of_members = [
            (
                member.name,
                "healthy" if member.problem is None else member.problem,
                "" if member.pid is None else member.pid,
                member.port,
                "" if member.uptime_s is None else _duration(member.uptime_s),
                "" if member.memory_bytes is None else f"{member.memory_bytes / MEBIBYTE:.0f} MiB",
            )
            for member in members
        ]
        show_table(["service", "health", "pid", "port", "uptime", "memory"], rows_of_members)
        click.echo()
    if health is None:
        return
    rows = [
        (
            broker.id,
            broker.address,
            broker.rack or "",
            broker.partitions,
            broker.leaders,
            "controller" if broker.id == health.controller else "",
        )
        for broker in health.brokers
    ]
    console().print(f"cluster [bold]{health.cluster_id}[/bold]")
    show_table(["broker", "address", "rack", "partitions", "leaders", ""], rows)
    click.echo()
    if health.controller is None:
        click.echo("there is no controller")
    if health.missing_brokers:
        click.echo(f"brokers that are missing: {', '.join(map(str, health.missing_brokers))}")
    click.echo(
        f"leader skew: {health.leader_skew:.2f} ({_count(health.not_preferred)} not led by the preferred replica)"
    )
    for broker, trouble in health.told.without_session:
        click.echo(f"broker {broker} has no session with ZooKeeper, which {trouble}")
    for view in health.told.disagreeing:
        others = ", ".join(map(str, view.brokers))
        click.echo(
            f"broker {view.broker} knows another cluster: the controller {view.controller}, the brokers {others}"
        )
    for failed in health.told.failed_directories:
        click.echo(f"a log directory of broker {failed.broker} has failed: {failed.path}: {failed.cause}")
    _show_partitions("under-replicated", health.under_replicated)
    _show_partitions("offline", health.offline)
    _show_partitions("below min ISR", health.below_min_isr)
    if health.told.damaged:
        click.echo(f"damaged partitions: {len(health.told.damaged)}")
        show_table(
            ["partition", "log of broker", "offset", "cause", "seen by"],
            [
                (str(damage.partition), damage.broker, damage.offset, damage.cause, damage.seen_by)
                for damage in health.told.damaged[:SHOWN_PARTITIONS]
            ],
        )
    if health.told.strays_of_each:
        of_each = ", ".join(f"{count} on broker {broker}" for broker, count in health.told.strays_of_each)
        click.echo(f"strays: {of_each} (penstock log strays list shows them)")
    if health.lost:
        click.echo(_lost(health))
    if health.is_healthy:
        console().print(f"[green]healthy[/green]: {health.num_partitions} partitions, all replicas in sync")


def _duration(seconds: float) -> str:
    """`42 s`, `5 min 3 s`, `2 h 7 min`, `3 d 4 h`: the two largest units."""
    left = int(seconds)
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        parts.append((left // size, unit))
        left %= size
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    return " ".join(f"{number} {unit}" for number, unit in parts[:2] if number) or "0 s"


def _lost(health: Health) -> str:
    """What there are only strays of, and what to do."""
    named = ", ".join(topic.name for topic in health.lost[:SHOWN_TOPICS])
    if len(health.lost) > SHOWN_TOPICS:
        named += " …"
    count = sum(len(topic.lost) for topic in health.lost)
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    return (
        f"lost to the cluster: {partitions} of which there are only strays ({named}). penstock log strays restore "
        "--all makes topics of them again; penstock log strays remove is for those that somebody deleted"
    )


def _show_partitions(what: str, states: list[PartitionState]) -> None:
    from penstock.cli.verbs.output import show_table

    click.echo(f"{what} partitions: {len(states)}")
    if not states:
        return
    shown = states[:SHOWN_PARTITIONS]
    show_table(
        ["partition", "leader", "replicas", "in sync"],
        [
            (
                str(state.partition),
                "none" if state.leader < 0 else str(state.leader),
                ",".join(map(str, state.replicas)),
                ",".join(map(str, state.isr)),
            )
            for state in shown
        ],
    )
    if len(states) > len(shown):
        click.echo(f"… and {len(states) - len(shown)} more (--json has all)")


def _count(states: list[PartitionState]) -> str:
    return "1 partition" if len(states) == 1 else f"{len(states)} partitions"
