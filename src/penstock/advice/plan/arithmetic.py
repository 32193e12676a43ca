"""From what is wanted to what it takes, one line of arithmetic after the other. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from penstock.advice.plan.model import Advice, Line, Wanted
from penstock.advice.plan.units import count, rate, size, span
from penstock.client.errors import UserError

DIVISIBLE: Final = (1, 2, 3, 4, 6, 8, 12, 18, 24, 30, 36, 48, 60, 72, 96, 120)
"""Numbers that many counts of consumers and brokers divide; beyond them multiples of the last."""
MIB: Final = 1024 * 1024
SMALLEST_SEGMENT: Final = 64 * MIB
LARGEST_SEGMENT: Final = 1024 * MIB
SEGMENTS_IN_RETENTION: Final = 20
DEFAULT_MAX_MESSAGE_BYTES: Final = 1_048_588
MAX_YEARS: Final = 50
UNUSUAL_PARTITIONS: Final = 1_000
GIGABYTES_PER_BROKER_TO_REBUILD: Final = 10e12
"""A broker with more takes hours to be copied anew when its disk is lost."""


def plan(wanted: Wanted) -> Advice:
    """UserError names a figure that cannot be."""
    _check(wanted)
    reckoning = _Reckoning(wanted)
    return reckoning.advice()


def _check(wanted: Wanted) -> None:
    for name, value, lowest in (
        ("throughput", wanted.bytes_per_s, 0),
        ("record size", wanted.record_bytes, 1),
        ("retention", wanted.retention_s, 0),
        ("replication", wanted.replication, 1),
        ("consumers", wanted.consumers, 0),
        ("groups", wanted.groups, 0),
        ("growth", wanted.growth_per_year, 0),
        ("years", wanted.years, 0),
        ("headroom", wanted.headroom, 0),
        ("disk of a broker", wanted.broker_disk_bytes, 1),
        ("cores of a broker", wanted.broker_cores, 1),
    ):
        if value is not None and not (math.isfinite(value) and value >= lowest):
            raise UserError(f"the {name} must be a number from {lowest} on, not {value:g}")
    if not 0 < wanted.compression < math.inf:
        raise UserError(f"the compression must be a number above 0, such as 3, not {wanted.compression:g}")
    if wanted.years > MAX_YEARS:
        raise UserError(f"a plan is for at most {MAX_YEARS} years")
    for name, each in wanted.assumptions._asdict().items():
        if not (math.isfinite(each) and each > 0):
            raise UserError(f"the assumption {name} must be a number above 0, not {each:g}")


class _Reckoning:
    """The lines, as they are written."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.lines: list[Line] = []

    def line(self, what: str, arithmetic: str, result: str) -> None:
        self.lines.append(Line(what, arithmetic, result))

    def advice(self) -> Advice:
        wanted = self.wanted
        grown = (1 + wanted.growth_per_year) ** wanted.years
        if not math.isfinite(wanted.bytes_per_s * grown * wanted.retention_s * wanted.replication):
            raise UserError("the figures are too large to be reckoned with")
        planned = self._planned(grown)
        records = wanted.bytes_per_s * (1 + wanted.headroom) * grown / wanted.record_bytes
        self.line(
            "records",
            f"{rate(planned * wanted.compression)} ÷ {size(wanted.record_bytes)}",
            f"{count(records)} records/s",
        )
        disk = self._disk(grown)
        reasons = self._brokers(planned, disk)
        partitions = self._partitions(planned, max(number for _, number in reasons))
        reasons.append(self._brokers_for_partitions(partitions))
        brokers = max(number for _, number in reasons)
        replicas = math.ceil(partitions * wanted.replication / brokers)
        self.line("brokers", "the largest of these", f"{brokers:,}")
        network_in, network_out = self._network(planned, brokers)
        self.line("disk of each broker", f"{size(disk)} ÷ {brokers:,}", size(disk / brokers))
        minimum = max(1, (wanted.replication + 1) // 2)
        self.line("min ISR", f"more than half of {wanted.replication}, so that one may be away" if wanted.replication > 2 else
                  f"of {wanted.replication}: more would stop writes when one is away", str(minimum))  # fmt: skip
        segment = segment_bytes(wanted.bytes_per_s / wanted.compression / partitions * wanted.retention_s)
        return Advice(
            partitions=partitions,
            brokers=brokers,
            replication=wanted.replication,
            min_isr=minimum,
            planned_bytes_per_s=planned,
            records_per_s=records,
            disk_bytes=disk,
            disk_bytes_per_broker=disk / brokers,
            network_in_bytes_per_s=network_in,
            network_out_bytes_per_s=network_out,
            replicas_per_broker=replicas,
            segment_bytes=segment,
            lines=tuple(self.lines),
            warnings=tuple(_warnings(wanted, partitions, reasons, disk / brokers)),
            commands=_commands(wanted, partitions, brokers, minimum, segment),
            disk_by_year=tuple(
                self._disk_after((1 + wanted.growth_per_year) ** year)
                for year in range(math.ceil(wanted.years) + 1)
            ),
            brokers_by=tuple(reasons),
        )

    def _planned(self, grown: float) -> float:
        wanted = self.wanted
        words = [rate(wanted.bytes_per_s)]
        words += [f"{1 + wanted.headroom:g} (headroom)"] if wanted.headroom else []
        words += [f"{grown:.3g} (growth, {wanted.years:g} {_years(wanted.years)})"] if grown != 1 else []
        text = " × ".join(words) + (
            f" ÷ {wanted.compression:g} (compression)" if wanted.compression != 1 else ""
        )
        planned = wanted.bytes_per_s * (1 + wanted.headroom) * grown / wanted.compression
        self.line("throughput to plan for", text, rate(planned))
        return planned

    def _partitions(self, planned: float, brokers: int) -> int:
        wanted, assumed = self.wanted, self.wanted.assumptions
        by_writing = max(1, math.ceil(planned / assumed.partition_bytes_per_s))
        self.line(
            "partitions for writing",
            f"{rate(planned)} ÷ {rate(assumed.partition_bytes_per_s)} a partition",
            f"{by_writing:,}",
        )
        by_reading = max(1, math.ceil(planned / assumed.consumer_bytes_per_s))
        self.line(
            "partitions for reading",
            f"{rate(planned)} ÷ {rate(assumed.consumer_bytes_per_s)} a consumer",
            f"{by_reading:,}",
        )
        self.line(
            "partitions for consumers",
            "each consumer of a group reads at least one",
            f"{max(1, wanted.consumers):,}",
        )
        self.line("partitions for brokers", "each broker leads at least one", f"{brokers:,}")
        needed = max(by_writing, by_reading, wanted.consumers, brokers)
        chosen = max(divisible(needed), wanted.partitions_now)
        there = f", and {wanted.partitions_now:,} there already" if wanted.partitions_now else ""
        self.line(
            "partitions", f"the largest, {needed:,}, up to a number that divides well{there}", f"{chosen:,}"
        )
        return chosen

    def _disk(self, grown: float) -> float:
        wanted, assumed = self.wanted, self.wanted.assumptions
        bytes_per_s = wanted.bytes_per_s * grown / wanted.compression
        one = bytes_per_s * wanted.retention_s
        self.line("kept records", f"{rate(bytes_per_s)} × {span(wanted.retention_s)}", size(one))
        all_ = one * wanted.replication * assumed.overhead
        self.line(
            "with replicas",
            f"{size(one)} × {wanted.replication} × {assumed.overhead:g} (indexes, open segments)",
            size(all_),
        )
        disk = self._disk_after(grown)
        self.line(
            "disk of the cluster",
            f"{size(all_)} ÷ {assumed.disk_used_at_most:g} (the rest stays free)",
            size(disk),
        )
        return disk

    def _disk_after(self, grown: float) -> float:
        wanted, assumed = self.wanted, self.wanted.assumptions
        kept = wanted.bytes_per_s * grown / wanted.compression * wanted.retention_s
        return kept * wanted.replication * assumed.overhead / assumed.disk_used_at_most

    def _brokers(self, planned: float, disk: float) -> list[tuple[str, int]]:
        wanted, assumed = self.wanted, self.wanted.assumptions
        copies, used = wanted.replication, assumed.used_at_most
        incoming, outgoing = planned * copies, planned * (copies - 1 + wanted.groups)
        reasons: list[tuple[str, int]] = []

        def asks(
            reason: str,
            arithmetic: str,
            needed: float,
            what: Callable[[int], str] = lambda number: f"{number:,}",
        ) -> None:
            number = max(1, math.ceil(needed - 1e-9))
            reasons.append((reason, number))
            self.line(f"brokers for {reason}", arithmetic, what(number))

        asks("replication", f"{copies} replicas, each on another broker", copies)
        if wanted.broker_disk_bytes is not None:
            asks(
                "disk space",
                f"{size(disk)} ÷ {size(wanted.broker_disk_bytes)}",
                disk / wanted.broker_disk_bytes,
            )
        bandwidth = assumed.disk_bytes_per_s * used
        asks(
            "disk writes",
            f"{rate(planned)} × {copies} ÷ ({rate(assumed.disk_bytes_per_s)} × {used:g})",
            incoming / bandwidth,
        )
        network = assumed.network_bytes_per_s * used
        asks(
            "network",
            f"{rate(max(incoming, outgoing))} ({'out' if outgoing > incoming else 'in'}) ÷ "
            f"({rate(assumed.network_bytes_per_s)} × {used:g})",
            max(incoming, outgoing) / network,
        )
        if wanted.broker_cores is not None:
            cores = wanted.broker_cores * assumed.core_bytes_per_s * used
            asks(
                "cores",
                f"{rate(incoming + outgoing)} in and out ÷ ({wanted.broker_cores} cores × "
                f"{rate(assumed.core_bytes_per_s)} × {used:g})",
                (incoming + outgoing) / cores,
            )
        if wanted.brokers_now:
            asks("what is there", "brokers are not taken away", wanted.brokers_now)
        return reasons

    def _brokers_for_partitions(self, partitions: int) -> tuple[str, int]:
        most = self.wanted.assumptions.replicas_per_broker
        number = math.ceil(partitions * self.wanted.replication / most)
        arithmetic = f"{partitions:,} × {self.wanted.replication} replicas ÷ {most:,} a broker"
        self.line("brokers for partitions", arithmetic, f"{number:,}")
        return "partitions", number

    def _network(self, planned: float, brokers: int) -> tuple[float, float]:
        wanted = self.wanted
        copies, groups = wanted.replication, wanted.groups
        incoming = planned * copies / brokers
        self.line(
            "network into each broker",
            f"{rate(planned)} × {copies} (producers, followers) ÷ {brokers:,}",
            rate(incoming),
        )
        outgoing = planned * (copies - 1 + groups) / brokers
        readers = f"{copies - 1} followers + {groups} {'group' if groups == 1 else 'groups'}"
        self.line(
            "network out of each broker", f"{rate(planned)} × ({readers}) ÷ {brokers:,}", rate(outgoing)
        )
        return incoming, outgoing


def _years(years: float) -> str:
    return "year" if years == 1 else "years"


def divisible(number: int) -> int:
    """The next number from the list on; above it the next multiple of its last."""
    for one in DIVISIBLE:
        if one >= number:
            return one
    last = DIVISIBLE[-1]
    return -(-number // last) * last


def segment_bytes(partition_bytes: float) -> int:
    """A power of two, so that a partition has some twenty segments when it is full: retention deletes whole segments."""
    if partition_bytes <= 0:
        return LARGEST_SEGMENT
    aimed = min(LARGEST_SEGMENT, max(SMALLEST_SEGMENT, partition_bytes / SEGMENTS_IN_RETENTION))
    return 1 << math.floor(math.log2(aimed))


def _warnings(
    wanted: Wanted, partitions: int, reasons: list[tuple[str, int]], disk_per_broker: float
) -> list[str]:
    told = []
    brokers = max(number for _, number in reasons)
    if wanted.replication < 3:
        told.append(
            f"With {'one replica' if wanted.replication == 1 else 'two replicas'} either a lost broker loses records "
            "or one that is "
            "away stops writes. Three is usual."
        )
    if wanted.record_bytes > DEFAULT_MAX_MESSAGE_BYTES:
        told.append(
            f"Records of {size(wanted.record_bytes)} are above the default max.message.bytes (1 MiB). Better keep "
            "them in an object "
            "store and send where they are."
        )
    if partitions > UNUSUAL_PARTITIONS:
        told.append(
            f"{partitions:,} partitions are many for one topic: producers batch worse, and rebalances take longer."
        )
    if wanted.consumers > partitions:
        told.append("There are more consumers than partitions: some of them have nothing to do.")
    if disk_per_broker > GIGABYTES_PER_BROKER_TO_REBUILD:
        told.append(
            f"{size(disk_per_broker)} on one broker take long to copy when its disk is lost: more and smaller "
            "brokers recover sooner."
        )
    others = max(number for reason, number in reasons if reason not in ("disk space", "partitions"))
    if brokers > 2 * others:
        told.append(
            f"Disk space decides: with {size(disk_per_broker * brokers / others)} for each broker, {others:,} would do. "
            "A shorter retention or compressed records need less."
        )
    if wanted.broker_disk_bytes is None:
        told.append("Say how large a broker's disk is (--broker-disk), and brokers are counted by it, too.")
    if wanted.broker_cores is not None and wanted.broker_cores > 1:
        told.append(
            f"A broker of Penstock is one process on one core. On machines of {wanted.broker_cores} cores run several each; "
            "Apache Kafka's uses all cores by itself."
        )
    if wanted.brokers_now and brokers > wanted.brokers_now:
        told.append(
            f"There are {wanted.brokers_now} brokers now: {brokers - wanted.brokers_now} more are needed."
        )
    return told


def _commands(wanted: Wanted, partitions: int, brokers: int, minimum: int, segment: int) -> tuple[str, ...]:
    create = (
        f"penstock topics create TOPIC --partitions {partitions} --replication-factor {wanted.replication}"
    )
    create += (
        f" --config min.insync.replicas={minimum} --config retention.ms={round(wanted.retention_s * 1000)}"
    )
    if segment != LARGEST_SEGMENT:
        create += f" --config segment.bytes={segment}"
    commands = [create]
    if brokers > wanted.brokers_now and brokers <= 100:
        commands.insert(0, f"penstock up --brokers {brokers} --data ./cluster")
    return tuple(commands)
