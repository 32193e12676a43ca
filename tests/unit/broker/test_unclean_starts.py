"""A lone broker that was not stopped cleanly leads on in a new epoch, so that clients can see a log that was cut."""

import pytest

from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, partition_at
from tests.unit.storage.batches import make_batch


async def start_again(cluster: SimulatedCluster) -> None:
    (machine,) = cluster.machines
    machine.start()
    await cluster.until(lambda: cluster.cluster.is_whole)


@pytest.mark.parametrize("loses_power", [True, False])
def test_a_client_that_was_further_can_see_that_the_log_was_cut(loses_power: bool) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=1)
        (machine,) = cluster.machines

        async def append() -> tuple[int, int]:
            partition = partition_at(machine, "orders")
            partition.append(memoryview(bytearray(make_batch(3)[0])))
            return partition.leader_epoch, partition.log.end_offset

        epoch, end_offset = await cluster.on(machine, append())
        machine.lose_power() if loses_power else machine.kill()
        await start_again(cluster)
        partition = partition_at(machine, "orders")
        assert partition.leader_epoch == epoch + 1
        kept = partition.log.end_offset
        assert kept <= end_offset
        await cluster.on(machine, append())
        _, epoch_end = partition.log.epoch_end_offset(epoch)
        assert epoch_end == kept  # whoever was further than that has read what is gone

    in_cluster(main, of=1)


def test_after_a_clean_stop_the_epoch_stays() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=1)
        (machine,) = cluster.machines
        epoch = partition_at(machine, "orders").leader_epoch
        stopped = machine.stop()
        await cluster.until(lambda: stopped.done() or not machine.is_up)
        await start_again(cluster)
        assert partition_at(machine, "orders").leader_epoch == epoch

    in_cluster(main, of=1)
