"""A cluster's work moved to another one: mirrored with the same names, exactly once, until there is no lag; then its groups.

What it keeps is at the target, so that it can be stopped and begun again at any time: how far each partition is, and where each
offset of the source is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from penstock.admin import Cluster
from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.mirror.clusters import BOOTSTRAP, options_of
from penstock.mirror.copying import Copying
from penstock.mirror.filters import Filter
from penstock.mirror.flows import EXACTLY_ONCE, Flow, read_flows
from penstock.mirror.flows import SOURCE as SOURCE_CONNECTOR
from penstock.mirror.group_offsets import groups_of, set_offsets, translated
from penstock.mirror.migration_plan import SOURCE, TARGET, Plan, make_plan, values_of
from penstock.mirror.naming import IDENTITY_POLICY, Naming
from penstock.mirror.progress import Progress
from penstock.mirror.running import Mirror
from penstock.mirror.settings import EXCLUDED_GROUPS, EXCLUDED_TOPICS
from penstock.mirror.sync_log import SyncLog
from penstock.model.ids import TopicPartition

LOOK_S: Final = 1.0
STILL_S: Final = 3.0
"""So long nothing may be written to the source before the groups move."""


class Side(NamedTuple):
    """A cluster, as a command line says it."""

    bootstrap: str
    properties: Mapping[str, str]

    def connection(self) -> Connection:
        return Connection(self.bootstrap, dict(self.properties))


class Lag(NamedTuple):
    records: int
    """Copied since this process began."""
    size_bytes: int
    lag: int
    partitions: int
    troubles: tuple[str, ...]


class MovedGroup(NamedTuple):
    group: str
    partitions: int
    is_set: bool
    """False: somebody reads at the target as this group."""


class Migration:
    """Use as a context."""

    def __init__(
        self,
        source: Side,
        target: Side,
        *,
        topics: Sequence[str] = (".*",),
        excluded: Sequence[str] = (),
        groups: Sequence[str] = (".*",),
        tasks: int = 1,
    ) -> None:
        """BadOption."""
        self._source_side, self._target_side = source, target
        self._values = values_of(topics, [*EXCLUDED_TOPICS, *excluded])
        self._groups = Filter(groups, EXCLUDED_GROUPS, "groups")
        self._source = Cluster.over(source.connection())
        self._target = Cluster.over(target.connection())
        self._flow = _flow(source, target, topics, [*EXCLUDED_TOPICS, *excluded], groups, tasks)
        self._naming = Naming(SOURCE, TARGET, is_identity=True)
        self._copying = Copying(self._source, self._target, self._naming, self._values)
        self._mirror: Mirror | None = None

    def __enter__(self) -> Migration:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._source.close()
        self._target.close()

    def plan(self) -> Plan:
        connection = self._source_side.connection()
        return make_plan(self._source, self._target, connection, self._values, self._groups)

    def start(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._mirror = Mirror([self._flow])
        self._mirror.start(is_stopping)

    def stop(self) -> None:
        mirror, self._mirror = self._mirror, None
        if mirror is not None:
            mirror.stop()

    def look(self) -> Lag:
        """What the source has, beside how far we are."""
        assert self._mirror is not None
        (state,) = self._mirror.states()
        ends = self._ends()
        kept = Progress.of(SOURCE, TARGET).kept()
        behind = sum(max(0, end - kept.get(place, 0)) for place, end in ends.items())
        return Lag(state.reached.records, state.reached.size_bytes, behind, len(ends), tuple(state.troubles))

    def wait_still(self, is_stopping: Callable[[], bool], tell: Callable[[Lag], None]) -> bool:
        """Until everything is copied and nothing has been written for a while. False: it was stopped before."""
        since_s: float | None = None
        ends: Mapping[TopicPartition, int] = {}
        while not is_stopping():
            found = self.look()
            now = self._ends()
            tell(found)
            now_s = time.monotonic()
            if found.lag or now != ends:
                ends, since_s = now, now_s
            elif since_s is not None and now_s - since_s >= STILL_S:
                return True
            time.sleep(LOOK_S / 4)
        return False

    def move_groups(self) -> list[MovedGroup]:
        """Every group gets at the target the offsets that it has at the source, in the records there. To be called when nothing
        is written any more and all is copied."""
        self.stop()  # how far it is, and all pairs of offsets, are kept then
        given = self._flow.connectors[SOURCE_CONNECTOR]
        log = SyncLog(
            options_of(given, "target", "consumer"), self._naming.offset_syncs_topic(at_source=False)
        )
        try:
            log.catch_up()
            return [self._move(group, log) for group in groups_of(self._source, self._groups.passes)]
        finally:
            log.close()

    def _move(self, group: str, log: SyncLog) -> MovedGroup:
        found, unknown = translated(
            self._source, group, log.offsets, wants=self._copying.wants, remote=self._naming.remote
        )
        places = {place: one.downstream for place, one in found.items()}
        if unknown:
            # Nothing of these was ever there to be copied: the group goes on with whatever comes.
            spans = self._target.offsets.spans(*{place.topic for place in unknown})
            places.update({place: spans[place].end_offset for place in unknown if place in spans})
        set_offsets(self._target, group, places, goes_back=True)
        there = self._target.groups.committed(group) if places else {}
        is_set = all(place in there and there[place].offset == offset for place, offset in places.items())
        return MovedGroup(group, len(places), is_set)

    def active_groups(self) -> list[str]:
        return [one.name for one in self.plan().groups if one.is_active]

    def _ends(self) -> dict[TopicPartition, int]:
        """Of what is committed: what a transaction has not committed is not copied."""
        topics = self._copying.found()
        if not topics:
            return {}
        from penstock.admin.offsets import LATEST, all_positions

        places = [TopicPartition(name, number) for name, count in topics.items() for number in range(count)]
        found = self._source.ask(lambda client: all_positions(client, places, LATEST, isolation_level=1))
        return {place: one.offset for place, one in found.items()}


def _flow(
    source: Side,
    target: Side,
    topics: Sequence[str],
    excluded: Sequence[str],
    groups: Sequence[str],
    tasks: int,
) -> Flow:
    given = {
        "clusters": f"{SOURCE},{TARGET}",
        **{f"{SOURCE}.{name}": value for name, value in source.properties.items()},
        **{f"{TARGET}.{name}": value for name, value in target.properties.items()},
        f"{SOURCE}.{BOOTSTRAP}": source.bootstrap,
        f"{TARGET}.{BOOTSTRAP}": target.bootstrap,
        f"{SOURCE}->{TARGET}.enabled": "true",
        "topics": ",".join(topics),
        "topics.exclude": ",".join(excluded),
        "groups": ",".join(groups),
        "tasks.max": str(tasks),
        "replication.policy.class": IDENTITY_POLICY,
        "replication.factor": "3",
        "offset-syncs.topic.location": "target",  # nothing is written to the cluster that is left
        "emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        "sync.topic.configs.interval.seconds": "10",
        "sync.topic.acls.interval.seconds": "30",
        EXACTLY_ONCE: "enabled",
    }
    (flow,) = read_flows(given)
    if source.bootstrap == target.bootstrap:
        raise UserError("--from and --to name the same cluster")
    return flow
