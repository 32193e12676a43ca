"""penstock plan: partitions, brokers, disk and network for what is wanted, with the arithmetic; or what is beyond the usual."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.verbs.common_options import connected, output_option
from penstock.client.errors import Unreachable, UserError

if TYPE_CHECKING:
    from penstock.advice.doctor import Finding
    from penstock.advice.plan import Advice, Assumptions, Wanted
    from penstock.advice.plan.measured import Measured
    from penstock.client.clients import Connection

F = TypeVar("F", bound=Callable[..., Any])
STEP_S = 0.25
GIVEN = "--throughput says how much is written; --from-cluster measures it"


def _assumed(command: F) -> F:
    """Adds --assume NAME=VALUE."""
    return click.option(
        "--assume",
        "assumed",
        multiple=True,
        metavar="NAME=VALUE",
        help="Another rule of thumb than ours; --assume list shows them all.",
    )(command)


@click.command()
@click.option(
    "--throughput",
    metavar="RATE",
    help="What producers write at the busiest time: 50MB/s, or 20000 records/s.",
)
@click.option("--record-size", metavar="SIZE", default="1KB", show_default=True, help="Of one record.")
@click.option(
    "--retention", metavar="TIME", default="7d", show_default=True, help="How long records are kept: 7d, 12h."
)
@click.option(
    "--replication",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Replicas of each partition.",
)
@click.option(
    "--consumers", type=click.IntRange(min=0), default=1, show_default=True, help="Of the largest group."
)
@click.option(
    "--groups",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Groups that each read everything.",
)
@click.option("--broker-disk", metavar="SIZE", help="Of one broker: 2TB.")
@click.option("--broker-cores", type=click.IntRange(min=1), help="Of one broker.")
@click.option("--growth", metavar="SHARE", default="0%", show_default=True, help="More each year: 20%/year.")
@click.option(
    "--years",
    type=click.FloatRange(min=0, max=50),
    default=1.0,
    show_default=True,
    help="How long the plan shall hold.",
)
@click.option(
    "--headroom", metavar="SHARE", default="30%", show_default=True, help="More than the busiest time."
)
@click.option(
    "--compression", type=click.FloatRange(min=0.1), default=1.0, show_default=True, metavar="TIMES",
    help="How many times smaller records are when producers compress them.",
)  # fmt: skip
@click.option(
    "--from-cluster",
    is_flag=True,
    help="Measure a running cluster for throughput, sizes, retention and groups.",
)
@click.option(
    "--check", is_flag=True, help="Warn of topics and brokers of a running cluster that are beyond the usual."
)
@click.option(
    "--measure", "seconds", type=click.FloatRange(min=0.1, max=86_400), default=10.0, show_default=True, metavar="SECONDS",
    help="How long --from-cluster and --check look.",
)  # fmt: skip
@_assumed
@output_option
@connected
def plan(
    connection: Connection,
    throughput: str | None,
    from_cluster: bool,
    check: bool,
    seconds: float,
    assumed: tuple[str, ...],
    output: str,
    **figures: Any,
) -> int:
    """Reckon partitions, brokers, replicas, min ISR, disk and network for what is wanted, line by line.

    With --from-cluster the figures are those of a running cluster, and the plan says what it needs. --check warns
    of what is beyond the usual there, and ends with 1 when it finds something.

    \b
    Example:
      penstock plan --throughput 50MB/s --record-size 1KB --retention 7d --consumers 12 --broker-disk 2TB --broker-cores 8
      penstock plan --from-cluster --growth 20%/year --years 2
      penstock plan --check
    """
    from penstock.cli.verbs.output import facts

    if assumed == ("list",):
        facts({name: f"{value:g}" for name, value in _assumptions(())._asdict().items()})
        return 0
    assumptions = _assumptions(assumed)
    wanted = _wanted(throughput, assumptions, **figures)
    if check and not from_cluster and throughput is None:
        from penstock.advice.plan.limits import check as beyond

        found = beyond(_measured(connection, seconds), assumptions)
        _show_findings(found, connection, output)
        return 1 if found else 0
    if not from_cluster:
        if throughput is None:
            raise click.UsageError(f"Missing option '--throughput'. {GIVEN}.")
        _show(wanted, [], None, connection, output)
        return 0
    return _from_cluster(connection, wanted, throughput, seconds, check, output)


def _from_cluster(
    connection: Connection, wanted: Wanted, throughput: str | None, seconds: float, check: bool, output: str
) -> int:
    """What was measured, but for what the command line says itself."""
    from penstock.advice.plan.limits import check as beyond
    from penstock.advice.plan.measured import as_wanted
    from penstock.cli.verbs.common_options import given

    measured = _measured(connection, seconds)
    found = beyond(measured, wanted.assumptions) if check else []
    said = {
        field: getattr(wanted, field)
        for option, field in (
            ("record_size", "record_bytes"),
            ("retention", "retention_s"),
            ("replication", "replication"),
        )
        if given(option) is not None
    }
    if throughput is not None:
        said["bytes_per_s"] = wanted.bytes_per_s
    _show(as_wanted(measured, wanted)._replace(**said), found, measured, connection, output)
    return 1 if found else 0


def _wanted(throughput: str | None, assumptions: Assumptions, **figures: Any) -> Wanted:
    from penstock.advice.plan import Wanted
    from penstock.advice.plan.units import parse_share, parse_size, parse_span, parse_throughput

    record_bytes = parse_size(figures["record_size"])
    return Wanted(
        bytes_per_s=parse_throughput(throughput, record_bytes) if throughput is not None else 0.0,
        record_bytes=record_bytes,
        retention_s=parse_span(figures["retention"]),
        replication=figures["replication"],
        consumers=figures["consumers"],
        groups=figures["groups"],
        broker_disk_bytes=parse_size(figures["broker_disk"]) if figures["broker_disk"] is not None else None,
        broker_cores=figures["broker_cores"],
        growth_per_year=parse_share(figures["growth"]),
        years=figures["years"],
        headroom=parse_share(figures["headroom"]),
        compression=figures["compression"],
        assumptions=assumptions,
    )


def _assumptions(words: tuple[str, ...]) -> Assumptions:
    from penstock.advice.plan import Assumptions
    from penstock.advice.plan.units import parse_share, parse_size

    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in Assumptions._fields:
            raise UserError(f"--assume {word}: there are {', '.join(Assumptions._fields)}; write NAME=VALUE")
        value = parse_size(text.removesuffix("/s")) if "bytes" in name else parse_share(text)
        found[name] = value
    return Assumptions()._replace(**found)


def _measured(connection: Connection, seconds: float) -> Measured:
    from penstock.advice.doctor.gathering import Watch, gather
    from penstock.advice.plan.measured import measure

    facts = gather(connection, watch=Watch(seconds, pause=_waited))
    if facts.unreachable is not None:
        raise Unreachable(f"{facts.unreachable}.")
    return measure(facts)


def _waited(seconds: float) -> None:
    """Passes the time, with a bar on a terminal."""
    if not sys.stderr.isatty():
        print(f"  measuring for {seconds:g} s", file=sys.stderr, flush=True)
        time.sleep(seconds)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from penstock.cli.verbs.output import console

    columns = (TextColumn("measuring"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=seconds)
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(STEP_S, left_s))
            bars.update(task, completed=seconds - max(0.0, until_s - time.monotonic()))


def _show(
    wanted: Wanted, found: list[Finding], measured: Measured | None, connection: Connection, output: str
) -> None:
    from penstock.advice.plan import plan as reckoned
    from penstock.cli.verbs.findings import document as document_of
    from penstock.cli.verbs.output import show

    advice = reckoned(wanted)

    def document() -> dict[str, Any]:
        made = advice._asdict()
        made["lines"] = [line._asdict() for line in advice.lines]
        made["brokers_by"] = dict(advice.brokers_by)
        made["wanted"] = {**wanted._asdict(), "assumptions": wanted.assumptions._asdict()}
        made["findings"] = [document_of(one) for one in found]
        return made

    def draw() -> None:
        _draw(advice, wanted, measured)
        if found:
            click.echo()
            _show_findings(found, connection, "table")

    show(output, document, draw)


def _draw(advice: Advice, wanted: Wanted, measured: Measured | None) -> None:
    from rich.markup import escape

    from penstock.advice.plan.units import rate, size
    from penstock.cli.verbs.output import console, facts, show_table

    terminal = console()
    if measured is not None:
        terminal.print(
            f"measured for {measured.seconds:.0f} s: {rate(measured.bytes_per_s)}, {measured.records_per_s:,.0f} records/s, "
            f"{len(measured.topics):,} topics, {measured.partitions:,} partitions, {measured.brokers} brokers"
        )
        terminal.print("[dim]the busiest time may be more: measure then, or say --throughput[/dim]\n")
    show_table(
        ["reckoned", "how", "result"], [(line.what, line.arithmetic, line.result) for line in advice.lines]
    )
    terminal.print()
    facts(
        {
            "partitions": f"{advice.partitions:,}",
            "brokers": f"{advice.brokers:,}",
            "replication factor": advice.replication,
            "min.insync.replicas": advice.min_isr,
            "disk of the cluster": size(advice.disk_bytes),
            "disk of each broker": size(advice.disk_bytes_per_broker),
            "network of each broker": f"{rate(advice.network_in_bytes_per_s)} in, {rate(advice.network_out_bytes_per_s)} out",
        }
    )
    for warning in advice.warnings:
        terminal.print(f"[yellow]![/yellow] {escape(warning)}")
    terminal.print()
    for command in advice.commands:
        terminal.print(f"[green]$ {escape(command)}[/green]", soft_wrap=True)


def _show_findings(found: list[Finding], connection: Connection, output: str) -> None:
    from penstock.cli.verbs.findings import document, draw, placed
    from penstock.cli.verbs.output import show

    there = placed(found, connection)
    show(
        output,
        lambda: [document(one) for one in there],
        lambda: draw(there, nothing="nothing is beyond the usual"),
    )
