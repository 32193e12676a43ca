"""What an administrator does to a cluster, as a library: topics, configs, groups, offsets, moves, transactions, dead letters.

    from penstock.admin import Cluster

    with Cluster("localhost:9092") as cluster:
        cluster.topics.create("orders", partitions=3)

The one path through it: `Cluster` (in `cluster`) has a facet for each kind of thing (`facets`). A facet borrows a client for each
call (`clients`) and asks by the modules beside, which know the requests. All of it is synchronous, gives plain named tuples,
prints nothing, and knows a broker by the Kafka protocol only. A `Cluster` may be shared between threads. The modules' functions
take a `ClusterClient`, which may not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.admin.cluster import Cluster

if TYPE_CHECKING:
    from penstock.admin.facets.configs import ConfigResource
    from penstock.admin.groups.reset import Target
    from penstock.model.ids import TopicPartition

__all__ = ["Cluster", "ConfigResource", "Target", "TopicPartition"]

# Loaded when they are asked for: a command that lists topics does not wait for what resets groups.
_HOMES = {
    "ConfigResource": "penstock.admin.facets.configs",
    "Target": "penstock.admin.groups.reset",
    "TopicPartition": "penstock.model.ids",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
