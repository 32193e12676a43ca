"""From the tree to an image and back to an empty cluster: what a broker does with the store when it
starts."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple

from penstock.metadata import acl_nodes, znodes
from penstock.metadata.image import (
    BROKERS,
    CLIENT_METRICS,
    CLIENTS,
    GROUPS,
    IPS,
    NO_CONTROLLER,
    NO_LEADER,
    NO_STATE,
    TOPICS,
    USERS,
    AclsChanged,
    ClusterImage,
    ConfigsChanged,
    PartitionRegistration,
    TokenChanged,
    TopicCreated,
)
from penstock.metadata.tree import Check, Create, MetadataTree, NodeExists, NoNode, Set, TreeNode, TreeOp
from penstock.model.acl import Pattern
from penstock.model.ids import NO_ID

LOADED_CONFIGS = (TOPICS, BROKERS, GROUPS, CLIENT_METRICS, USERS, CLIENTS, IPS)
"""The nodes under /config that are read and watched."""
MAX_PREPARE_ATTEMPTS = 10


async def prepare_tree(tree: MetadataTree, *, new_cluster_id: str) -> str:
    """Make the nodes that every cluster has, and give the cluster its id if it has none; the id it has.

    One `multi` of what is missing, so that a tree is prepared wholly or not at all and a prepared one is not
    written. Of several brokers that prepare at once one succeeds; the others look again.
    """
    for _ in range(MAX_PREPARE_ATTEMPTS - 1):
        try:
            return await _prepare(tree, new_cluster_id)
        except NodeExists:
            continue
    return await _prepare(tree, new_cluster_id)


async def _prepare(tree: MetadataTree, new_cluster_id: str) -> str:
    ops: list[TreeOp] = []
    for path in (*znodes.PERSISTENT_PATHS, *acl_nodes.PERSISTENT_PATHS):
        if not await tree.exists(path):
            ops.append(Create(path, znodes.FIRST_DATA.get(path, b"")))
    cluster_id = new_cluster_id
    try:
        cluster_id = znodes.decode_cluster_id((await tree.get(znodes.CLUSTER_ID)).data)
    except NoNode:
        ops.append(Create(znodes.CLUSTER_ID, znodes.encode_cluster_id(new_cluster_id)))
    if ops:
        await tree.multi(ops)
    return cluster_id


async def shared_key(tree: MetadataTree, *, new_key: bytes) -> bytes:
    """What only brokers of this cluster know: the first that asks has made it."""
    for _ in range(MAX_PREPARE_ATTEMPTS - 1):
        try:
            return (await tree.get(znodes.SHARED_KEY)).data
        except NoNode:
            try:
                await tree.create(znodes.SHARED_KEY, new_key)
            except NodeExists:
                continue
    return (await tree.get(znodes.SHARED_KEY)).data


class Controllership(NamedTuple):
    """`epoch_version` is the version of `/controller_epoch` in which this epoch was written: every change of this
    controller's checks it, so that a controller that was replaced writes nothing more."""

    epoch: int
    epoch_version: int


async def become_controller(
    tree: MetadataTree, broker_id: int, *, now_ms: int, known_epoch: int = 0
) -> Controllership:
    """Take `/controller` and count the epoch up, together. NodeExists when another has it; BadVersion when another came and
    went meanwhile. `known_epoch`: the last that we have heard of. A tree that was wiped does not know it, and other brokers would
    refuse whoever began again."""
    create = Create(znodes.CONTROLLER, znodes.encode_controller(broker_id, now_ms=now_ms), ephemeral=True)
    try:
        node = await tree.get(znodes.CONTROLLER_EPOCH)
    except NoNode:
        epoch = known_epoch + 1
        await tree.multi([create, Create(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch))])
        return Controllership(epoch, 0)
    epoch = max(znodes.decode_controller_epoch(node.data), known_epoch) + 1
    await tree.multi(
        [create, Set(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch), node.version)]
    )
    return Controllership(epoch, node.version + 1)


async def give_topic_id(
    tree: MetadataTree, won: Controllership, topic: TopicCreated, topic_id: bytes
) -> TopicCreated:
    """For a topic of a Kafka before 2.8, which has none; BadVersion when we are not the controller any more."""
    data = znodes.encode_topic(topic_id, topic.partitions)
    await tree.multi(
        [Check(znodes.CONTROLLER_EPOCH, won.epoch_version), Set(znodes.topic_path(topic.name), data)]
    )
    return topic._replace(topic_id=topic_id)


async def load_image(
    tree: MetadataTree,
    *,
    give_id: Callable[[TopicCreated], Awaitable[TopicCreated]] | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> ClusterImage:
    """The whole image, read from the tree; `BadNode` names the first node that cannot be read. `report` is told of nodes among
    the access rules that are none, and of tokens that cannot be read: they are left out.

    A topic without an id is given one by the controller. Until then others leave it out: they could not tell it from the
    next.
    """
    image = ClusterImage()
    cluster_id = await _find(tree, znodes.CLUSTER_ID)
    if cluster_id is not None:
        image.set_cluster_id(znodes.decode_cluster_id(cluster_id.data))
    controller = await _find(tree, znodes.CONTROLLER)
    epoch = await _find(tree, znodes.CONTROLLER_EPOCH)
    image.set_controller(
        NO_CONTROLLER if controller is None else znodes.decode_controller(controller.data),
        epoch=0 if epoch is None else znodes.decode_controller_epoch(epoch.data),
    )
    for path, node in (await tree.subtree(znodes.BROKER_IDS)).items():
        if path != znodes.BROKER_IDS:
            broker_id = int(path.rpartition("/")[2])
            image.add_broker(znodes.decode_broker(broker_id, node.data)._replace(epoch=node.created))
    for topic in _topics(await tree.subtree(znodes.TOPICS)):
        if topic.topic_id != NO_ID:
            image.apply(topic)
        elif give_id is not None:
            image.apply(await give_id(topic))
    for entity_type in LOADED_CONFIGS:
        root = f"{znodes.CONFIG}/{entity_type}"
        for path, node in (await tree.subtree(root)).items():
            entity = znodes.config_entity(path)
            if entity is not None:
                image.apply(ConfigsChanged(*entity, znodes.decode_config(path, node.data)))
    for root in acl_nodes.WATCHED_ROOTS:
        for change in acls_of(await tree.subtree(root), report):
            image.apply(change)
    for path, node in (await tree.subtree(znodes.TOKENS)).items():
        if path == znodes.TOKENS:
            continue
        try:
            token = znodes.decode_token(path, node.data)
        except znodes.BadNode as error:
            report(f"{error}; nobody can log in with that token")
        else:
            image.apply(TokenChanged(token.token_id, token))
    return image


def acls_of(nodes: Mapping[str, TreeNode], report: Callable[[str], None]) -> Iterator[AclsChanged]:
    """What the nodes below a root of access rules say. One that cannot be read does not keep the broker from its start."""
    for path, node in nodes.items():
        try:
            pattern = acl_nodes.pattern_of(path)
        except ValueError as error:
            report(f"{error}; it is left as it is")
            continue
        if pattern is not None:
            yield acls_at(pattern, path, node)


def acls_at(pattern: Pattern, path: str, node: TreeNode) -> AclsChanged:
    try:
        return AclsChanged(pattern, acl_nodes.decode_rules(path, node.data), node.version)
    except znodes.BadNode as error:
        return AclsChanged(pattern, (), node.version, str(error))


async def load_epochs_seen(tree: MetadataTree) -> znodes.EpochsSeen:
    """The registrations that controllers have acted upon (`brokers.epochs_seen`)."""
    node = await _find(tree, znodes.BROKER_EPOCHS)
    return znodes.EpochsSeen() if node is None else znodes.decode_broker_epochs(node.data)


async def _find(tree: MetadataTree, path: str) -> TreeNode | None:
    try:
        return await tree.get(path)
    except NoNode:
        return None


def _topics(nodes: dict[str, TreeNode]) -> list[TopicCreated]:
    found = []
    prefix = znodes.TOPICS + "/"
    for path, node in nodes.items():
        name = path[len(prefix) :]
        if not name or "/" in name:
            continue
        topic_id, assignments = znodes.decode_topic(name, node.data)
        partitions = tuple(
            _partition(assignment, znodes.partition_state_path(name, index), nodes)
            for index, assignment in enumerate(assignments)
        )
        found.append(TopicCreated(name, topic_id, partitions))
    return found


def _partition(
    assignment: znodes.Assignment, state_path: str, nodes: dict[str, TreeNode]
) -> PartitionRegistration:
    node = nodes.get(state_path)
    if node is None:
        return PartitionRegistration(
            assignment.replicas, (), NO_LEADER, 0, NO_STATE, assignment.adding, assignment.removing
        )
    state = znodes.decode_partition_state(state_path, node.data)
    return PartitionRegistration(
        assignment.replicas,
        state.isr,
        state.leader,
        state.leader_epoch,
        node.version,
        assignment.adding,
        assignment.removing,
        state.isr_epochs,
    )
