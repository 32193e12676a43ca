"""What is beyond the usual in a cluster that runs: of topics, partitions and brokers. Pure."""

from __future__ import annotations

from typing import Final

from penstock.advice.doctor.finding import Finding, Severity
from penstock.advice.doctor.words import word
from penstock.advice.plan.measured import Measured
from penstock.advice.plan.model import Assumptions
from penstock.advice.plan.units import rate, size

PARTITIONS_OF_TOPIC: Final = 1_000
PARTITIONS_OF_CLUSTER: Final = 200_000
LARGE_RECORD_BYTES: Final = 100_000


def check(measured: Measured, assumed: Assumptions | None = None) -> list[Finding]:
    """The most urgent first; [] where nothing is unusual."""
    known = assumed or Assumptions()
    found = [*_topics(measured, known), *_brokers(measured, known)]
    return sorted(found, key=lambda finding: finding.severity.rank)


def _topics(measured: Measured, assumed: Assumptions) -> list[Finding]:
    found = []
    for topic in measured.topics:
        described = f"penstock topics describe {word(topic.name)}"
        if topic.busiest_bytes_per_s > assumed.partition_bytes_per_s:
            more = max(topic.partitions + 1, round(topic.bytes_per_s / assumed.partition_bytes_per_s + 0.5))
            found.append(
                Finding(
                    Severity.WARNING,
                    f"a partition of {topic.name} gets more than {rate(assumed.partition_bytes_per_s)}",
                    (
                        f"its busiest partition {rate(topic.busiest_bytes_per_s)}, all {topic.partitions} together "
                        f"{rate(topic.bytes_per_s)}",
                    ),
                    "More partitions spread it over more disks and consumers. Keys go to other partitions then.",
                    f"penstock topics alter {word(topic.name)} --partitions {more}",
                    "plan",
                )
            )
        if topic.partitions > PARTITIONS_OF_TOPIC:
            found.append(
                Finding(
                    Severity.NOTE,
                    f"{topic.name} has {topic.partitions:,} partitions",
                    (f"more than {PARTITIONS_OF_TOPIC:,} are unusual for one topic",),
                    "Producers batch worse and rebalances take longer. Partitions cannot be taken away: a new topic "
                    "can have fewer.",
                    described,
                    "plan",
                )
            )
        if topic.records_per_s > 0 and topic.bytes_per_s / topic.records_per_s > LARGE_RECORD_BYTES:
            found.append(
                Finding(
                    Severity.NOTE,
                    f"records of {topic.name} are large",
                    (f"{size(topic.bytes_per_s / topic.records_per_s)} each on disk",),
                    "Above 100 kB brokers and clients need much memory. Keep large things elsewhere, and send where they are.",
                    described,
                    "plan",
                )
            )
    return found


def _brokers(measured: Measured, assumed: Assumptions) -> list[Finding]:
    found = []
    for broker, replicas in measured.replicas_of:
        if replicas > assumed.replicas_per_broker:
            found.append(
                Finding(
                    Severity.WARNING,
                    f"broker {broker} keeps {replicas:,} replicas",
                    (f"more than {assumed.replicas_per_broker:,} are unusual",),
                    "Starts and changes of leaders take long. Add brokers, and move partitions to them.",
                    "penstock cluster",
                    "plan",
                )
            )
    for broker, total, free in measured.disks_of:
        used = 1 - free / total
        if used > assumed.disk_used_at_most:
            found.append(
                Finding(
                    Severity.WARNING,
                    f"the disks of broker {broker} are {used:.0%} full",
                    (
                        f"{size(free)} of {size(total)} free; at most {assumed.disk_used_at_most:.0%} should be used",
                    ),
                    "When a broker is away, or a partition moves, the others need that space.",
                    "penstock doctor --only disk",
                    "plan",
                )
            )
    if measured.brokers and measured.partitions > PARTITIONS_OF_CLUSTER:
        found.append(
            Finding(
                Severity.WARNING,
                f"{measured.partitions:,} partitions in the cluster",
                (f"more than {PARTITIONS_OF_CLUSTER:,} are unusual",),
                "The controller and every client's metadata grow with them.",
                "penstock topics list",
                "plan",
            )
        )
    written = (
        measured.bytes_per_s
        * max((one.replication for one in measured.topics), default=1)
        / max(1, measured.brokers)
    )
    bandwidth = assumed.disk_bytes_per_s * assumed.used_at_most
    if written > bandwidth:
        found.append(
            Finding(
                Severity.WARNING,
                f"each broker writes {rate(written)}",
                (
                    f"more than {assumed.used_at_most:.0%} of {rate(assumed.disk_bytes_per_s)} that a broker's disks "
                    "are taken to write",
                ),
                "There is too little left for catching up. Add brokers, or say what the disks write.",
                "penstock plan --from-cluster",
                "plan",
            )
        )
    return found
