"""A set of in-sync replicas that the controller refuses holds nothing back."""

from pathlib import Path

from penstock.broker.partitions.partition import Partition
from penstock.metadata import image
from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import NOW_MS, StillClock


def test_records_are_committed_when_the_replica_that_was_waited_for_is_refused(tmp_path: Path) -> None:
    """Replica 2 asked to join and then stopped: the members have everything, and nobody fetches or appends any more."""
    clock = StillClock()
    log = Log.open(OsDisk(), str(tmp_path / "orders-0"), LogOptions(), clock)
    partition = Partition("orders", 0, log, clock, leader_epoch=0)
    placed = image.PartitionRegistration((1, 2, 3), (1, 3), leader=1, leader_epoch=1, partition_epoch=1)
    partition.lead(placed, own_id=1)
    proposed = partition.follower_fetched(2, 0)
    assert proposed == {1, 2, 3}
    assert partition.leadership is not None
    partition.leadership.proposed = proposed
    partition.append(memoryview(build_batch([(b"k", b"v", (), NOW_MS)])), to_all=True)
    told: list[ErrorCode] = []
    partition.when_committed(1, told.append)
    partition.follower_fetched(3, 1)
    assert told == []
    partition.withdraw_isr()
    assert told == [ErrorCode.NONE]
    assert partition.high_watermark == 1
