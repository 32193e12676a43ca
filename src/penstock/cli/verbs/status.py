"""penstock status: is the cluster well?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from penstock.cli.box.composition import DEFAULT_DATA, Box
from penstock.cli.cluster_health import Health, PartitionState
from penstock.cli.failures import Refused, Unreachable
from penstock.cli.verbs.common_options import DEFAULT_BOOTSTRAP, given, output_option

SHOWN_PARTITIONS = 20
SHOWN_TOPICS = 10


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"The cluster that penstock up keeps there ({DEFAULT_DATA} if there is one).",
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
    bootstrap_server: str | None,
    command_config: str | None,
    as_json: bool,
    output: str,
) -> int:
    """Show brokers, controller, leader skew, and partitions that are under-replicated, offline, below min ISR or damaged, or of
    which there are only strays.

    Ends with 0 when the cluster is well and with 1 when it is not, so that scripts can wait for it.

    \b
    Example:
      penstock status
      penstock status -b localhost:9092 --json
    """
    from penstock.cli.clients import Connection
    from penstock.cli.cluster_client import ClusterClient
    from penstock.cli.cluster_health import examine
    from penstock.cli.property_files import read_properties
    from penstock.cli.verbs.output import show_json

    if data is not None:  # which says it more exactly than the environment
        bootstrap_server = given("bootstrap_server")
    box = _box(data, bootstrap_server)
    address = bootstrap_server or (box.bootstrap if box is not None else DEFAULT_BOOTSTRAP)
    properties = read_properties(command_config) if command_config else None
    processes = _processes(box)
    health: Health | None = None
    problem: str | None = None
    try:
        with ClusterClient(Connection(address, properties)) as client:
            health = examine(client)
    except (Unreachable, Refused) as error:
        problem = str(error)
        if box is not None and isinstance(error, Unreachable):
            problem = f"no broker answers: penstock up --data {box.directory} starts what does not run"
    is_well = health is not None and health.is_well and all(one["pid"] is not None for one in processes)
    if as_json or output == "json":
        show_json({"healthy": is_well, "problem": problem, "processes": processes, **_as_json(health)})
    else:
        _show(processes, health)
        if problem is not None:
            raise Unreachable(problem)
    return 0 if is_well else 1


def _box(data: Path | None, bootstrap: str | None) -> Box | None:
    from penstock.cli.box.composition import existing_box, read_box

    if data is not None:
        return existing_box(data)
    return read_box(Path(DEFAULT_DATA)) if bootstrap is None else None


def _processes(box: Box | None) -> list[dict[str, Any]]:
    from penstock.cli.box.processes import running_pid

    if box is None:
        return []
    return [
        {
            "name": member.name,
            "pid": running_pid(box, member),
            "port": member.port,
            "log": str(box.log_of(member)),
        }
        for member in box.members
    ]


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


def _show(processes: list[dict[str, Any]], health: Health | None) -> None:
    from penstock.cli.verbs.output import console, show_table

    if processes:
        show_table(
            ["process", "pid", "port", "log"],
            [(one["name"], one["pid"] or "not running", one["port"], one["log"]) for one in processes],
        )
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
    if health.is_well:
        console().print(f"[green]well[/green]: {health.num_partitions} partitions, all replicas in sync")


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
