"""Which offsets are in a table. Each snapshot that a task commits says it of all partitions of its connector.

    penstock.connect.offsets.NAME = {"orders": {"0": 1200, "1": 1180}}        the next ones to read

Who rolls the table back to an older snapshot rolls the offsets back with it. The same stands in the table's properties, for a
table whose snapshots of this connector have expired.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.table import Table

from penstock.connect.interface import TopicPlace

PREFIX: Final = "penstock.connect.offsets."
COMMIT_ID: Final = "penstock.connect.commit-id"
Offsets = dict[TopicPlace, int]


def offsets_of(table: Table, connector: str) -> Offsets:
    return parsed(_text_of(table, PREFIX + connector))


def _text_of(table: Table, name: str) -> str:
    """What the newest snapshot says that says anything."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        said = _said(snapshot, name)
        if said is not None:
            return said
        parent = snapshot.parent_snapshot_id
        if parent is None:
            break
        snapshot = table.snapshot_by_id(parent)
        if snapshot is None:  # it has expired
            return str(table.properties.get(name, "{}"))
    return "{}"


def has_commit(table: Table, commit_id: str) -> bool:
    return any(_said(each, COMMIT_ID) == commit_id for each in table.metadata.snapshots)


def kept_offsets(table: Table) -> dict[str, str]:
    """Of all connectors, as properties of a snapshot."""
    return {name: _text_of(table, name) for name in table.properties if name.startswith(PREFIX)}


def shown(offsets: Mapping[TopicPlace, int]) -> str:
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic, separators=(",", ":"))


def parsed(text: str) -> Offsets:
    return {
        (topic, int(partition)): int(offset)
        for topic, of_topic in json.loads(text).items()
        for partition, offset in of_topic.items()
    }


def _said(snapshot: Any, name: str) -> str | None:
    summary = snapshot.summary
    found = None if summary is None else summary.additional_properties.get(name)
    return None if found is None else str(found)
