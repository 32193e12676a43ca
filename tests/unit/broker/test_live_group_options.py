"""Options of groups that may change while their coordinator is loaded."""

from random import Random
from types import SimpleNamespace
from typing import Any

from penstock.broker.coordinators.groups import GroupHost
from penstock.config.loading import load
from penstock.metadata.image import ClusterImage

INTERVAL = "group.consumer.assignment.interval.ms"


def test_the_interval_between_assignments_changes_also_for_groups_that_are_loaded() -> None:
    config, _ = load({}, {})
    node = SimpleNamespace(config=config, image=ClusterImage(), random=Random(1))
    host: Any = SimpleNamespace(_node=node)
    shard = GroupHost.new_shard(host, 0)
    assert shard._options_of("readers").consumer_assignment_interval_ms == 1000
    config.set_dynamic(cluster_default={INTERVAL: "7000"}, broker={})
    assert shard._options_of("readers").consumer_assignment_interval_ms == 7000
