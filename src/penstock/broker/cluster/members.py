"""The registrations of all brokers, as they are in the tree, and what the cluster can do by them.

The controller tells others who is there, but not which registration that is, nor what it can do: every broker reads that itself.

A feature has the highest level that every member has. A broker of Apache Kafka in ZooKeeper mode says nothing of features: it
has none of them. Their epoch is the greatest registration: a client believes the greater epoch, so a member that comes and has
less is heard. When such a member leaves, the levels rise; clients take that up with the next member that comes.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from penstock.broker.cluster.followed_nodes import FollowedNodes
from penstock.controller.features import FEATURES
from penstock.metadata import znodes
from penstock.metadata.image import NO_BROKER_EPOCH, BrokerRegistration
from penstock.metadata.tree import MetadataTree, NoNode

if TYPE_CHECKING:
    from penstock.broker.facets import WithImage

    class Needs(WithImage, Protocol): ...


class Members(FollowedNodes):
    def __init__(self, node: "Needs", store: MetadataTree) -> None:
        super().__init__(store, [znodes.BROKER_IDS])
        self._registered: dict[int, BrokerRegistration] = dict(node.image.brokers)
        """As the image was read at the start, and from then on as the tree says."""
        self.features: tuple[int, Mapping[str, int]] = self._found_features()
        """Their epoch, and the level of each."""

    async def _read(self, path: str) -> None:
        children = await self._store.children(znodes.BROKER_IDS)
        found = {}
        for broker_id in sorted(int(child) for child in children if child.isdigit()):
            try:
                node = await self._store.get(znodes.broker_path(broker_id))
            except NoNode:
                continue
            found[broker_id] = znodes.decode_broker(broker_id, node.data)._replace(epoch=node.created)
        self._registered = found
        self.features = self._found_features()

    def epoch(self, broker_id: int) -> int:
        known = self._registered.get(broker_id)
        return NO_BROKER_EPOCH if known is None else known.epoch

    def is_kafka(self, broker_id: int) -> bool:
        """Whether it is a broker of Apache Kafka. One that is not registered is none."""
        known = self._registered.get(broker_id)
        return known is not None and not is_penstock(known)

    def _found_features(self) -> tuple[int, Mapping[str, int]]:
        epoch = max((each.epoch for each in self._registered.values()), default=0)
        return max(epoch, 0), common_levels(self._registered.values())


def is_penstock(member: BrokerRegistration) -> bool:
    """Kafka's brokers in ZooKeeper mode register no features, and ours always do."""
    return bool(member.features) or member.intact_since != NO_BROKER_EPOCH


def common_levels(members: Iterable[BrokerRegistration]) -> Mapping[str, int]:
    """What all of them have; where nobody is registered yet, what we have."""
    levels = dict(FEATURES)
    for member in members:
        theirs = member.features or (FEATURES if is_penstock(member) else {})
        levels = {name: min(level, theirs.get(name, 0)) for name, level in levels.items()}
    return levels
