"""Producer ids that are in the logs, for when the metadata about them is lost.

A new producer must not get the id of one that a log remembers: its first batch would be out of order, or be taken for one that
is in the log already.
"""

import struct
from collections.abc import Iterable
from typing import Final

from penstock.broker.upkeep.log_directories import LogDirectories
from penstock.controller.producer_ids import BLOCK_SIZE
from penstock.metadata import znodes
from penstock.metadata.tree import BadVersion, MetadataTree, Set
from penstock.metadata.znodes import ProducerIdBlock
from penstock.runtime.files import Disk
from penstock.storage import names

MARGIN: Final = 1_000_000
"""Kept free above the largest producer id of the snapshots, which may be older than the logs, or than those of other brokers."""
_SNAPSHOT_ENTRIES_AT: Final = 10
_SNAPSHOT_ENTRY: Final = struct.Struct(">q38x")  # the producer id, and what else is known of it


async def take_producer_ids(tree: MetadataTree, directories: LogDirectories, broker_id: int) -> None:
    """Of a store that has given out none yet, though we were a cluster's broker before: it was wiped, or is another one. The next
    ids are above those that our logs know, in case they are taken back. A broker that was killed may have no snapshots: then a
    margin above none has to do.
    """
    node = await tree.get(znodes.PRODUCER_ID_BLOCK)
    if znodes.decode_producer_id_block(node.data) is not None:
        return
    paths = [
        f"{home.path}/{topic_partition}"
        for topic_partition in directories.all_logs()
        if (home := directories.home(topic_partition))
    ]
    paths += [stray.path for directory in directories.online for stray in directory.strays]
    next_id = max(next_producer_id(directories.disk, paths), MARGIN)
    try:
        await tree.multi([Set(znodes.PRODUCER_ID_BLOCK, block_before(next_id, broker_id), node.version)])
    except BadVersion:
        pass  # another broker was faster, with logs like ours


def next_producer_id(disk: Disk, logs: Iterable[str]) -> int:
    """The first that none of these logs can know; 0 when they know none."""
    largest = max((_largest(disk, path) for path in logs), default=-1)
    return 0 if largest < 0 else (largest + MARGIN) // BLOCK_SIZE * BLOCK_SIZE


def block_before(next_id: int, broker_id: int) -> bytes:
    """What the tree says when that id is the next to be given out."""
    block = ProducerIdBlock(broker_id, max(next_id - BLOCK_SIZE, 0), next_id - 1)
    return znodes.encode_producer_id_block(block)


def _largest(disk: Disk, path: str) -> int:
    largest = -1
    for name, _ in disk.list_files(path):
        if names.offset_of(name, names.SNAPSHOT_SUFFIX) is not None:
            data = disk.read(f"{path}/{name}")[_SNAPSHOT_ENTRIES_AT:]
            whole = data[: len(data) // _SNAPSHOT_ENTRY.size * _SNAPSHOT_ENTRY.size]
            largest = max(
                largest, *(producer_id for (producer_id,) in _SNAPSHOT_ENTRY.iter_unpack(whole)), -1
            )
    return largest
