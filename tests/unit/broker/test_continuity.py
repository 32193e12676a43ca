"""What a broker says of its logs when it is started again: that nothing was lost since its last registration, or nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.broker.cluster.continuity import FILE_NAME, Continuity
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.metadata.image import NO_BROKER_EPOCH
from penstock.model.ids import TopicPartition
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.checkpoints import HIGH_WATERMARK_CHECKPOINT
from penstock.storage.options import LogOptions
from simulation.seeds.machine import DATA, Machine
from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, node_of, partition_at


async def started_again(cluster: SimulatedCluster, machine: Machine) -> int:
    machine.start()
    await cluster.until(lambda: machine.node is not None)
    store = node_of(machine).tree
    found = await cluster.on(machine, store.get(f"/brokers/ids/{machine.broker_id}"))
    marker = b'"penstock_intact_since":'
    _, has_it, rest = found.data.partition(marker)
    return int(rest.partition(b",")[0]) if has_it else NO_BROKER_EPOCH


@pytest.mark.parametrize(
    ("end", "is_intact"),
    [(Machine.kill, True), (Machine.lose_power, False)],
)
def test_a_process_that_ended_has_lost_nothing_and_a_machine_has(
    end: Callable[[Machine], None], is_intact: bool
) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        machine = next(each for each in cluster.machines if each is not cluster.controller)
        epoch = node_of(machine).broker_epoch
        end(machine)
        assert await started_again(cluster, machine) == (epoch if is_intact else NO_BROKER_EPOCH)

    in_cluster(main)


def test_a_broker_whose_disk_failed_does_not_say_that_it_is_intact() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        machine = next(each for each in cluster.machines if each is not cluster.controller)
        node = node_of(machine)
        assert node.partitions.disk.exists(f"{DATA}/{FILE_NAME}")

        async def fail() -> None:
            node.membership.continuity.broke()

        await cluster.on(machine, fail())
        assert not node.partitions.disk.exists(f"{DATA}/{FILE_NAME}")
        machine.kill()
        assert await started_again(cluster, machine) == NO_BROKER_EPOCH

    in_cluster(main)


def test_a_replica_that_lost_nothing_stays_in_sync() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        leader = cluster.leader("orders")
        other = next(each for each in cluster.machines if each not in (leader, cluster.controller))
        epoch = partition_at(leader, "orders").leader_epoch
        other.kill()
        await started_again(cluster, other)
        await cluster.until(lambda: partition_at(other, "orders").leader_epoch == epoch)
        assert partition_at(leader, "orders").leader_epoch == epoch
        assert partition_at(leader, "orders").replica.isr == {1, 2, 3}

    in_cluster(main)


def started(directory: Path, *, is_killed: bool = False) -> int:
    """Up to the opened logs, or killed while it opens them."""
    partitions = HeldPartitions(OsDisk(), [str(directory)], SystemClock(), broker_id=1, is_clustered=True)
    continuity = Continuity(partitions, "boot")
    partitions.ensure(bytes(15) + b"1", TopicPartition("orders", 0), LogOptions(), is_new=False)
    if not is_killed:
        continuity.logs_opened()
    partitions.release()
    return continuity.intact_since


def test_a_start_that_comes_to_nothing_does_not_hide_a_lost_log_from_the_next(tmp_path: Path) -> None:
    """The first makes the missing log anew and ends before it is registered; to the second nothing seems to be missing."""
    (tmp_path / FILE_NAME).write_text("17 boot")
    (tmp_path / HIGH_WATERMARK_CHECKPOINT).write_text("0\n1\norders 0 5\n")
    assert started(tmp_path) == NO_BROKER_EPOCH
    assert started(tmp_path) == NO_BROKER_EPOCH
    (tmp_path / FILE_NAME).write_text("18 boot")
    assert started(tmp_path) == 18
    assert started(tmp_path) == 18  # which comes to nothing after it has opened the logs


def test_a_start_that_is_killed_while_it_opens_the_logs_hides_no_lost_log_from_the_next(
    tmp_path: Path,
) -> None:
    (tmp_path / FILE_NAME).write_text("17 boot")
    (tmp_path / HIGH_WATERMARK_CHECKPOINT).write_text("0\n1\norders 0 5\n")
    started(tmp_path, is_killed=True)
    assert started(tmp_path) == NO_BROKER_EPOCH


def test_a_log_that_was_never_here_is_not_lost(tmp_path: Path) -> None:
    """The process ended while a topic was made: the cluster places it here, and the broker had not been told."""
    (tmp_path / FILE_NAME).write_text("17 boot")
    (tmp_path / HIGH_WATERMARK_CHECKPOINT).write_text("0\n1\norders 1 5\n")
    assert started(tmp_path) == 17
