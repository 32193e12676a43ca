"""Strays: logs that a cluster's metadata does not place where they are. Found on all brokers, or in one directory; and what it
takes to make a topic of them again.

Brokers tell of them by DescribeLogDirs, in a field of Penstock's. A topic is restored by making it with its id, on the brokers
that have its strays, above the leader epochs that they know: each broker then takes its own back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from penstock.cli.cluster_client import ClusterClient, refused
from penstock.cli.failures import Refused, UserError
from penstock.cli.wire_client import UnsupportedByBroker
from penstock.config.topic_options import KEEP_ALL
from penstock.model.errors import ErrorCode
from penstock.model.ids import id_text
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.runtime.files import OsDisk
from penstock.storage.strays import list_strays, measure
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    PenstockRestored,
)
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

TIMEOUT_MS: Final = 30_000
INTERNAL_CONFIGS: Final = {"cleanup.policy": "compact", "segment.bytes": "104857600"}


class FoundStray(NamedTuple):
    broker: int | None
    """None: found in a directory, without a broker."""
    log_directory: str
    directory: str
    topic: str
    partition: int
    topic_id: bytes
    size_bytes: int
    start_offset: int
    end_offset: int
    leader_epoch: int
    set_aside_ms: int

    @property
    def reach(self) -> tuple[int, int]:
        """The one with the greatest has all that was ever committed."""
        return self.leader_epoch, self.end_offset

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "topic_id": id_text(self.topic_id)}


def ask_strays(client: ClusterClient) -> list[FoundStray]:
    """Of all brokers that are there; those that are not Penstock's tell of none."""
    found: list[FoundStray] = []
    for node in client.nodes():
        try:
            answer = client.ask_node(node, DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse)
        except UnsupportedByBroker:
            continue
        for directory in answer.results:
            for stray in directory.penstock_strays:
                found.append(
                    FoundStray(
                        node.node_id, directory.log_dir, stray.directory, stray.topic, stray.partition_index,
                        stray.topic_id, stray.size_bytes, stray.start_offset, stray.end_offset,
                        stray.leader_epoch, stray.set_aside_ms,
                    )
                )  # fmt: skip
    return sorted(found, key=lambda one: (one.topic, one.partition, one.broker, one.directory))


def read_strays(path: str) -> list[FoundStray]:
    """Of one log directory, whether a broker uses it or not."""
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        raise UserError(f"{path} is not a directory")
    disk = OsDisk()
    found = []
    try:
        for stray in list_strays(disk, path):
            extent = measure(disk, stray)
            found.append(
                FoundStray(
                    None, path, stray.name, *stray.topic_partition, stray.topic_id, extent.size_bytes,
                    stray.start_offset, extent.end_offset, extent.leader_epoch, stray.set_aside_ms,
                )
            )  # fmt: skip
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    return sorted(found, key=lambda one: (one.topic, one.partition, one.directory))


class Restoration(NamedTuple):
    name: str
    topic_id: bytes
    assignments: list[list[int]]
    """By partition: the brokers that have strays of it, the one that goes furthest first."""
    leader_epoch: int
    missing: list[int]
    """Partitions of which nobody has a stray."""
    end_offsets: list[int]


def plan(strays: Iterable[FoundStray], wanted: str, *, name: str | None = None) -> Restoration:
    """Of the topic with that name or id; UserError when there is none, or when several had that name."""
    chosen = [stray for stray in strays if wanted in (stray.topic, id_text(stray.topic_id))]
    if not chosen:
        raise UserError(
            f"no broker has a stray of {wanted}: penstock log strays list shows those that there are"
        )
    ids = sorted({id_text(stray.topic_id) for stray in chosen})
    if len(ids) > 1:
        raise UserError(
            f"{wanted} is the name of several topics: give the id of one of them ({', '.join(ids)})"
        )
    by_partition: dict[int, dict[int, FoundStray]] = {}
    for stray in chosen:
        assert stray.broker is not None
        of_partition = by_partition.setdefault(stray.partition, {})
        known = of_partition.get(stray.broker)
        if known is None or known.reach < stray.reach:
            of_partition[stray.broker] = stray
    count = max(by_partition) + 1
    missing = [index for index in range(count) if index not in by_partition]
    anybody = sorted({stray.broker for stray in chosen if stray.broker is not None})
    assignments: list[list[int]] = []
    ends: list[int] = []
    for index in range(count):
        found = by_partition.get(index, {})
        ordered = sorted(found, key=lambda broker: (found[broker].reach, -broker), reverse=True)
        assignments.append(ordered or anybody)
        ends.append(found[ordered[0]].end_offset if ordered else 0)
    return Restoration(
        name or chosen[0].topic,
        chosen[0].topic_id,
        assignments,
        max(max(stray.leader_epoch for stray in chosen), -1) + 1,
        missing,
        ends,
    )


def check_name(client: ClusterClient, planned: Restoration) -> None:
    """UserError when the cluster has a topic of that name, or with that id."""
    for topic in client.metadata().topics:
        if topic.topic_id == planned.topic_id:
            raise UserError(
                f"the cluster has this topic, as {topic.name}, and keeps it on other brokers: there is nothing to restore. "
                "When it has all its records, remove the strays"
            )
        if topic.name == planned.name:
            raise UserError(
                f"another topic is called {planned.name}: delete it first, or restore under another name with --as"
            )


def restored_configs(name: str, given: Mapping[str, str]) -> dict[str, str]:
    """Those of a topic were in the metadata that is lost: where none are given, it keeps all records."""
    assumed = INTERNAL_CONFIGS if name in (CONSUMER_OFFSETS, TRANSACTION_STATE) else KEEP_ALL
    return {**assumed, **given}


def restore(client: ClusterClient, planned: Restoration, configs: Mapping[str, str]) -> None:
    """Refused when the controller refuses."""
    topic = CreatableTopic(
        name=planned.name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(planned.assignments)
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        penstock_restored=[PenstockRestored(topic_id=planned.topic_id, leader_epoch=planned.leader_epoch)],
    )
    answer = client.ask_controller(
        CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS),
        CreateTopicsResponse,
        codes=lambda answered: [one.error_code for one in answered.topics],
        timeout_s=TIMEOUT_MS / 1000,
    )
    (result,) = answer.topics
    if result.error_code != ErrorCode.NONE:
        raise refused(result.error_code, result.error_message)
    if result.topic_id != planned.topic_id:
        raise Refused(
            f"the controller gave {planned.name} another id: it is of a version that cannot restore"
        )
