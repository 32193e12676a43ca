"""Topics: made, given more partitions, and their configs set. Partitions are never taken away, and replicas never moved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.admin import Cluster
from penstock.admin.configs import OF_TOPIC, ConfigEntry
from penstock.admin.facets.configs import ConfigResource
from penstock.admin.topic_changes import NewTopic, create_topics
from penstock.admin.topics import TopicDescription
from penstock.client.errors import Refused
from penstock.stack.contents.outcome import Outcome
from penstock.stack.description.model import TopicWish


def apply_topics(
    cluster: Cluster, topics: Sequence[TopicWish], file: Path, outcome: Outcome, *, check: bool = False
) -> None:
    """`check` says what would be done and does nothing. Unreachable."""
    if not topics:
        return
    there = {one.name for one in cluster.topics.list(internal=True)}
    _make([one for one in topics if one.name not in there], cluster, file, outcome, check=check)
    old = [one for one in topics if one.name in there]
    if not old:
        return
    described = {one.name: one for one in cluster.topics.describe(*(one.name for one in old))}
    configs = cluster.configs.of_topics(*(one.name for one in old))
    for wish in old:
        try:
            _change(
                cluster, wish, described[wish.name], configs.get(wish.name, {}), file, outcome, check=check
            )
        except Refused as error:
            outcome.say_failed(f"{file}:{wish.line}: topic {wish.name}: {error}")


def _make(topics: list[TopicWish], cluster: Cluster, file: Path, outcome: Outcome, *, check: bool) -> None:
    wanted = [NewTopic(one.name, one.partitions, one.replication, dict(one.configs), ()) for one in topics]
    if not wanted:
        return
    refusals = cluster.change(lambda client: create_topics(client, wanted, validate_only=check))
    for wish in topics:
        refusal = refusals.get(wish.name)
        if refusal is not None:
            outcome.say_failed(f"{file}:{wish.line}: topic {wish.name}: {refusal}")
        else:
            outcome.say_done(f"topic {wish.name} {'would be made' if check else 'was made'}")


def _change(
    cluster: Cluster,
    wish: TopicWish,
    there: TopicDescription,
    configs: dict[str, ConfigEntry],
    file: Path,
    outcome: Outcome,
    *,
    check: bool,
) -> None:
    before = len(outcome.done), len(outcome.differs)
    where, will = f"{file}:{wish.line}", "would" if check else ""
    has = len(there.partitions)
    if wish.partitions is not None and wish.partitions > has:
        if not check:
            cluster.topics.add_partitions(wish.name, wish.partitions)
        outcome.say_done(
            f"topic {wish.name} {'would have' if check else 'has'} {wish.partitions} partitions now, {has} before"
        )
    elif wish.partitions is not None and wish.partitions < has:
        outcome.say_differs(
            f"topic {wish.name} has {has} partitions, and {wish.partitions} in {where}: partitions cannot be taken away"
        )
    copies = max((one.replication_factor for one in there.partitions), default=0)
    if wish.replication is not None and wish.replication != copies:
        outcome.say_differs(
            f"topic {wish.name} has replication {copies}, and {wish.replication} in {where}: "
            f"penstock topics alter {wish.name} --replication-factor {wish.replication} moves its replicas"
        )
    differing = {name: value for name, value in wish.configs.items() if not _is_set(configs.get(name), value)}
    if differing:
        if not check:
            cluster.configs.alter(ConfigResource.topic(wish.name), set=differing)
        changes = ", ".join(f"{name}={value}{_was(configs.get(name))}" for name, value in differing.items())
        outcome.say_done(f"topic {wish.name} {will}{' get' if check else 'got'} {changes}")
    for name in sorted(_own(configs) - wish.configs.keys()):
        outcome.say_differs(
            f"topic {wish.name} has {name}={configs[name].value}, which is not in {where}: "
            f"penstock configs delete --topic {wish.name} {name} takes it away"
        )
    if (len(outcome.done), len(outcome.differs)) == before:
        outcome.as_wished += 1


def _own(configs: dict[str, ConfigEntry]) -> set[str]:
    return {name for name, entry in configs.items() if entry.source == OF_TOPIC}


def _is_set(entry: ConfigEntry | None, value: str) -> bool:
    """Lists may be written with blanks, and numbers are as they are written."""
    if entry is None or entry.value is None or entry.source != OF_TOPIC:
        return False
    return [each.strip() for each in entry.value.split(",")] == [each.strip() for each in value.split(",")]


def _was(entry: ConfigEntry | None) -> str:
    if entry is None or entry.value is None or entry.source != OF_TOPIC:
        return ""
    return f" ({entry.value} before)"
