"""What is wrong with a cluster at this look ◇, the worst first, each with what to do. `penstock.advice.doctor` looks closer
and takes longer; this is what a page can say at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from penstock.admin.health import PartitionState
from penstock.console.clusters.model import ClusterView

ERROR, WARNING, NOTE = "error", "warning", "note"
MAX_NAMED: Final = 3
SKEW: Final = 1.5
DISK_FULL_SHARE: Final = 0.9


class Finding(NamedTuple):
    severity: str
    key: str
    """Of the words: `overview.KEY` says what is wrong, `overview.KEY_todo` what to do."""
    amount: int
    named: str
    """A few names of what it is about."""
    command: str = ""


def findings(view: ClusterView) -> list[Finding]:
    return [*_brokers(view), *_partitions(view), *_told(view), *_notes(view)]


def _brokers(view: ClusterView) -> Iterable[Finding]:
    health = view.health
    if health.controller is None:
        yield Finding(ERROR, "no_controller", 0, "")
    if health.missing_brokers:
        yield Finding(ERROR, "missing_brokers", len(health.missing_brokers), _named(health.missing_brokers))
    silent = [one.id for one in view.brokers if not one.answers]
    if silent:
        yield Finding(ERROR, "silent_brokers", len(silent), _named(silent))


def _partitions(view: ClusterView) -> Iterable[Finding]:
    health = view.health
    if health.offline:
        yield Finding(ERROR, "offline", len(health.offline), _of(health.offline), "penstock cluster status")
    if health.below_min_isr:
        yield Finding(ERROR, "below_min_isr", len(health.below_min_isr), _of(health.below_min_isr))
    behind = [state for state in health.under_replicated if state not in health.below_min_isr]
    if behind:
        yield Finding(WARNING, "under_replicated", len(behind), _of(behind))
    for topic in health.lost:
        yield Finding(ERROR, "lost", len(topic.lost), topic.name, f"penstock log strays {topic.name}")


def _told(view: ClusterView) -> Iterable[Finding]:
    told = view.health.told
    if told.damaged:
        named = _named(f"{one.partition} ({one.broker})" for one in told.damaged)
        yield Finding(ERROR, "damaged", len(told.damaged), named)
    if told.failed_directories:
        named = _named(f"{one.broker}: {one.path}" for one in told.failed_directories)
        yield Finding(ERROR, "failed_directories", len(told.failed_directories), named)
    if told.without_session:
        named = _named(broker for broker, _ in told.without_session)
        yield Finding(ERROR, "without_session", len(told.without_session), named)
    if told.disagreeing:
        yield Finding(
            ERROR, "disagreeing", len(told.disagreeing), _named(one.broker for one in told.disagreeing)
        )


def _notes(view: ClusterView) -> Iterable[Finding]:
    full = [
        one.id
        for one in view.brokers
        if one.disk_total_bytes
        and one.disk_usable_bytes is not None
        and one.disk_usable_bytes < (1 - DISK_FULL_SHARE) * one.disk_total_bytes
    ]
    if full:
        yield Finding(WARNING, "disk_full", len(full), _named(full))
    if view.health.not_preferred and view.health.leader_skew > SKEW:
        count = len(view.health.not_preferred)
        yield Finding(NOTE, "not_preferred", count, _of(view.health.not_preferred), "kafka-leader-election --election-type "
                      "preferred --all-topic-partitions")  # fmt: skip
    refused = [group.name for group in view.groups.values() if group.error]
    if refused:
        yield Finding(NOTE, "groups_refused", len(refused), _named(refused))


def _of(states: Sequence[PartitionState]) -> str:
    return _named([state.partition for state in states])


def _named(values: Iterable[object]) -> str:
    """
    >>> _named([1, 2, 3, 4])
    '1, 2, 3 …'
    """
    known = [str(value) for value in values]
    return ", ".join(known[:MAX_NAMED]) + (" …" if len(known) > MAX_NAMED else "")
