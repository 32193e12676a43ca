"""What is wanted, what is assumed, and what comes of it."""

from __future__ import annotations

from typing import NamedTuple

DAY_S = 86_400.0


class Assumptions(NamedTuple):
    """Rules of thumb, each of which may be set. Bytes are decimal: 1 MB is 1,000,000."""

    partition_bytes_per_s: float = 10e6
    """What one partition takes from producers: one log on one disk, one leader."""
    consumer_bytes_per_s: float = 10e6
    """What one consumer processes; its own work counts more than reading."""
    core_bytes_per_s: float = 150e6
    """What one core of a broker moves, in and out together. Large batches need a quarter of that (bench/RESULTS.md has 0.3 to 1.7
    seconds of a core per GB); small ones, compression and TLS need more."""
    disk_bytes_per_s: float = 200e6
    """What the disks of one broker write."""
    network_bytes_per_s: float = 1.25e9
    """What the network of one broker carries in each direction: 10 Gbit/s."""
    used_at_most: float = 0.6
    """Of cores, disks' bandwidth and network, in normal times: the rest is for catching up and for brokers that are away."""
    disk_used_at_most: float = 0.75
    """Of the space of the disks."""
    replicas_per_broker: int = 4_000
    """Beyond it, starts and changes of leaders take long."""
    overhead: float = 1.05
    """Batches' headers, indexes, and the segment that is not full yet."""


class Wanted(NamedTuple):
    """What a topic, or all topics of a cluster together, shall carry."""

    bytes_per_s: float
    """From producers, before replication, at the busiest time."""
    record_bytes: float = 1_000.0
    retention_s: float = 7 * DAY_S
    replication: int = 3
    consumers: int = 1
    """Of the largest group: so many shall be able to read at once."""
    groups: int = 1
    """Groups that each read everything."""
    broker_disk_bytes: float | None = None
    """None: whatever it takes is told, and brokers are not counted by it."""
    broker_cores: int | None = None
    growth_per_year: float = 0.0
    """0.2 is 20 % more each year."""
    years: float = 1.0
    """How long the plan shall hold."""
    headroom: float = 0.3
    """0.3: three tenths more than the busiest time."""
    compression: float = 1.0
    """How many times smaller records are on the wire and on disk than the figures above; 1 where those are compressed already."""
    partitions_now: int = 0
    """What there is already: partitions are never taken away."""
    brokers_now: int = 0
    assumptions: Assumptions = Assumptions()


class Line(NamedTuple):
    """One line of the arithmetic."""

    what: str
    """What is reckoned, such as `disk of each broker`."""
    arithmetic: str
    """With the figures put in: `50 MB/s × 1.3 × 1.2`."""
    result: str
    """With its unit: `78 MB/s`."""

    def __str__(self) -> str:
        return f"{self.what}: {self.arithmetic} = {self.result}"


class Advice(NamedTuple):
    """What a cluster should be. Rates are of the whole cluster unless their names say otherwise."""

    partitions: int
    brokers: int
    replication: int
    min_isr: int
    planned_bytes_per_s: float
    """From producers, with headroom and growth."""
    records_per_s: float
    disk_bytes: float
    """All replicas, at the end of the years, with what must stay free."""
    disk_bytes_per_broker: float
    network_in_bytes_per_s: float
    """Of each broker: producers and the leaders that it follows."""
    network_out_bytes_per_s: float
    """Of each broker: consumers and the followers that it serves."""
    replicas_per_broker: int
    segment_bytes: int
    """`segment.bytes` that suits the retention."""
    lines: tuple[Line, ...]
    warnings: tuple[str, ...]
    commands: tuple[str, ...]
    """What makes it so, as one would type it; TOPIC stands for the topic's name."""
    disk_by_year: tuple[float, ...] = ()
    """Bytes of disk of the whole cluster: now, and after each year, for a chart."""
    brokers_by: tuple[tuple[str, int], ...] = ()
    """How many brokers each reason asks for: replication, disk, cores and so on. The largest counts."""
