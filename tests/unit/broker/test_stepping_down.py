"""A leader that the controller has replaced, and that nobody told so: it learns it when it asks for something."""

import pytest

from penstock.model.errors import ApiError, ErrorCode
from penstock.replication.leader import Leadership
from tests.unit.broker.simulated_cluster import SimulatedCluster, node_of, partition_at


def test_a_leader_whose_registration_is_not_known_leads_nothing_until_it_is_told_anew() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", partitions=3)
        controller = cluster.controller
        machine, partition = next(
            (each, partition_at(each, "orders", index))
            for each in cluster.machines
            for index in range(3)
            if each is not controller and partition_at(each, "orders", index).is_leader
        )
        node = node_of(machine)
        epoch, node.broker_epoch = node.broker_epoch, 1  # as of a session that ended without its knowing
        leadership = partition.leadership
        assert isinstance(leadership, Leadership)

        async def propose() -> None:
            node.roles.isr_changes.propose(partition, frozenset({node.broker_id}))

        await cluster.on(machine, propose())
        await cluster.until(lambda: not partition.is_leader)
        known = node.image.partition("orders", partition.index)
        assert known is not None
        assert known.leader == -1
        with pytest.raises(ApiError) as refused:
            partition.check_leader()
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        node.broker_epoch = epoch

    SimulatedCluster(3).run(main)
