"""Whether this broker can become a member of a cluster of Apache Kafka, looked at before anything is registered or written.

Reads the tree and asks the members; nothing is changed. What stands in the way is one line each, with what to do. A broker that
is started looks at the same (`must_not_join`), as far as it would harm the cluster, and only where there are brokers of Kafka.

Not looked at: clocks, which neither the tree nor a broker tells without a write; and record batches of formats before 2 in old
segments, which only topics say whose `message.format.version` is old.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock.broker.access.inter_broker import inter_broker_listener
from penstock.broker.cluster.members import is_penstock
from penstock.broker.cluster.spoken import ASKED_VERSION, CLIENT_NAME, missing_versions
from penstock.config.layers import BrokerConfig
from penstock.controller.features import FEATURES
from penstock.metadata import znodes
from penstock.metadata.image import TOPICS, BrokerRegistration
from penstock.metadata.tree import MetadataTree, NoNode
from penstock.model.endpoints import Endpoint
from penstock.net.endpoints import security_protocol
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

PROTOCOL_VERSION: Final = "inter.broker.protocol.version"
LEAST_PROTOCOL: Final = (3, 5)
"""From then on a follower says in its fetches which registration it is: without that it never comes into an in-sync set."""
FORMAT_VERSION: Final = "log.message.format.version"
LEAST_FORMAT: Final = (0, 11)
MIGRATION: Final = "/migration"
BROKER_RESOURCE: Final = 4
DESCRIBE_VERSION: Final = 4
ASKED_CONFIGS: Final = (
    PROTOCOL_VERSION,
    FORMAT_VERSION,
    "authorizer.class.name",
    "zookeeper.metadata.migration.enable",
)

Ask = Callable[[BrokerRegistration, Any, Any, int], Awaitable[Any]]
"""(whom, request, the answer's class, version) → the answer; OSError where there is none."""


class Finding(NamedTuple):
    check: str
    stops: bool
    text: str


def stop(check: str, text: str) -> Finding:
    return Finding(check, True, text)


def warn(check: str, text: str) -> Finding:
    return Finding(check, False, text)


async def findings(
    config: BrokerConfig,
    tree: MetadataTree,
    ask: Ask,
    *,
    known_cluster_id: str | None,
    own_endpoints: Mapping[str, Endpoint],
) -> list[Finding]:
    """All that stands in the way, and what to know besides; TreeError when the tree cannot be read. `known_cluster_id` is that of
    the log directories, if they have one."""
    connect = config.get("zookeeper.connect")
    cluster_id = await _data(tree, znodes.CLUSTER_ID)
    if cluster_id is None or not await tree.exists(znodes.BROKER_IDS):
        return [
            stop(
                "chroot",
                f"zookeeper.connect={connect} holds no cluster of Apache Kafka: give the address of its brokers' own "
                "zookeeper.connect, with the same path at its end. A cluster in KRaft mode has no ZooKeeper: move it by "
                "penstock migrate",
            )
        ]
    found = await _state_of_the_tree(tree)
    theirs = znodes.decode_cluster_id(cluster_id)
    if known_cluster_id not in (None, theirs):
        found.append(
            stop(
                "cluster id",
                f"the log directories belong to cluster {known_cluster_id}, and this is {theirs}: use other log.dirs",
            )
        )
    members = await _members(tree)
    found += _own_id(config, members, own_endpoints)
    if not members:
        found.append(warn("members", "no broker of the cluster runs now"))
    found += _security(config, members)
    for member in members.values():
        if not is_penstock(member):
            found += await _member(config, member, ask)
    found += await _topics(config, tree)
    return found


async def kafkas_members(tree: MetadataTree, config: BrokerConfig) -> list[BrokerRegistration]:
    """The brokers of Apache Kafka that run now, without one of our own id."""
    members = (await _members(tree)).values()
    return [each for each in members if not is_penstock(each) and each.id != config.node_id]


async def must_not_join(
    tree: MetadataTree, ask: Ask, config: BrokerConfig, members: Iterable[BrokerRegistration]
) -> list[Finding]:
    """Why a broker must not start beside these. Who does not answer is passed over."""
    found = await _state_of_the_tree(tree)
    for member in members:
        found += await _member(config, member, ask)
    return found


# --- the tree


async def _data(tree: MetadataTree, path: str) -> bytes | None:
    try:
        return (await tree.get(path)).data
    except NoNode:
        return None


async def _state_of_the_tree(tree: MetadataTree) -> list[Finding]:
    found = []
    controller = await _data(tree, znodes.CONTROLLER)
    kraft_epoch = _json(controller).get("kraftControllerEpoch", -1)
    if isinstance(kraft_epoch, int) and kraft_epoch >= 0:
        found.append(
            stop("KRaft", "a KRaft controller has this cluster: finish its migration, or roll it back, first")
        )
    elif await tree.exists(MIGRATION):
        found.append(
            stop(
                "KRaft",
                f"the tree has {MIGRATION}: a migration to KRaft was begun. Roll it back, and delete that node",
            )
        )
    finalized = _json(await _data(tree, znodes.FEATURE)).get("features") or {}
    for name, levels in sorted(finalized.items()):
        level = levels.get("max_version_level", 0) if isinstance(levels, Mapping) else levels
        if level > FEATURES.get(name, 0):
            found.append(
                stop(
                    "features",
                    f"the cluster has feature {name} at level {level}, which Penstock does not have",
                )
            )
    return found


async def _members(tree: MetadataTree) -> dict[int, BrokerRegistration]:
    found = {}
    for path, node in sorted((await tree.subtree(znodes.BROKER_IDS)).items()):
        name = path.rpartition("/")[2]
        if name.isdigit():
            found[int(name)] = znodes.decode_broker(int(name), node.data)
    return found


def _json(data: bytes | None) -> Mapping[str, Any]:
    try:
        found = json.loads(data or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


async def _topics(config: BrokerConfig, tree: MetadataTree) -> list[Finding]:
    found = []
    root = f"{znodes.CONFIG}/{TOPICS}"
    for path, node in sorted((await tree.subtree(root)).items()):
        entity = znodes.config_entity(path)
        if entity is None:
            continue
        topic = entity[1]
        overrides = znodes.decode_config(path, node.data)
        for mistake in config.topic_mistakes(overrides):
            found.append(warn("configs", f"topic {topic}: {mistake}"))
        written = _version(overrides.get("message.format.version", ""))
        if written is not None and written < LEAST_FORMAT:
            text = overrides["message.format.version"]
            found.append(
                stop(
                    "formats",
                    f"topic {topic} keeps its records in the format of {text}, which Penstock does not read: delete "
                    "message.format.version there, and wait until the old segments are gone",
                )
            )
        if overrides.get("remote.storage.enable") == "true":
            found.append(
                stop(
                    "formats", f"topic {topic} keeps records in remote storage, which Penstock does not read"
                )
            )
    return found


# --- who we are


def _own_id(
    config: BrokerConfig, members: Mapping[int, BrokerRegistration], own: Mapping[str, Endpoint]
) -> list[Finding]:
    taken = members.get(config.node_id)
    if taken is None or taken.endpoints == own:
        return []
    at = ", ".join(f"{each.host}:{each.port}" for each in taken.endpoints.values())
    return [
        stop(
            "id",
            f"broker {config.node_id} is already in the cluster, at {at}: stop it, or set another broker.id",
        )
    ]


def _security(config: BrokerConfig, members: Mapping[int, BrokerRegistration]) -> list[Finding]:
    listener = inter_broker_listener(config)
    try:
        protocol = security_protocol(listener, config.get("listener.security.protocol.map"))
    except ValueError as error:
        return [stop("security", str(error))]
    found = []
    for member in members.values():
        endpoint = member.endpoints.get(listener)
        names = ", ".join(sorted(member.endpoints)) or "none"
        if endpoint is None:
            found.append(
                stop(
                    "security",
                    f"broker {member.id} has no listener {listener}, by which this broker would reach it, but {names}: "
                    "set inter.broker.listener.name as the others have it",
                )
            )
        elif endpoint.security_protocol != protocol:
            found.append(
                stop(
                    "security",
                    f"listener {listener} is {endpoint.security_protocol} at broker {member.id} and {protocol} here",
                )
            )
    return found


# --- the members


async def _member(config: BrokerConfig, member: BrokerRegistration, ask: Ask) -> list[Finding]:
    who = f"broker {member.id}"
    try:
        known = await ask(
            member,
            ApiVersionsRequest(client_software_name=CLIENT_NAME, client_software_version="1"),
            ApiVersionsResponse,
            ASKED_VERSION,
        )
        versions = {each.api_key: (each.min_version, each.max_version) for each in known.api_keys}
        missing = missing_versions(member.id, versions)
        if missing:
            return [stop("versions", f"{missing[0]} (Apache Kafka 3.5 or later)")]
        resource = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=str(member.id), configuration_keys=ASKED_CONFIGS
        )
        answer = await ask(
            member, DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse, DESCRIBE_VERSION
        )
    except OSError as error:
        return [warn("members", f"{who} does not answer, so it was not looked at: {error}")]
    (result,) = answer.results
    if result.error_code:
        why = result.error_message or f"error {result.error_code}"
        return [
            warn(
                "members", f"{who} does not say its configs ({why}): this broker needs Describe Configs there"
            )
        ]
    return list(_configs(config, who, {each.name: each.value for each in result.configs}))


def _configs(config: BrokerConfig, who: str, theirs: Mapping[str, str | None]) -> Iterable[Finding]:
    protocol = theirs.get(PROTOCOL_VERSION) or ""
    version = _version(protocol)
    if version is not None and version < LEAST_PROTOCOL:
        least = ".".join(map(str, LEAST_PROTOCOL))
        yield stop(
            "protocol version",
            f"{who} has {PROTOCOL_VERSION}={protocol}: raise it to {least} or later on every broker first (better: delete "
            "the line, so that it is the release's own)",
        )
    written = _version(theirs.get(FORMAT_VERSION) or "")
    if written is not None and written < LEAST_FORMAT:
        yield stop(
            "formats",
            f"{who} writes records in the format of {theirs[FORMAT_VERSION]} ({FORMAT_VERSION}): delete that line, and "
            "wait until the old segments are gone",
        )
    if theirs.get("zookeeper.metadata.migration.enable") == "true":
        yield stop("KRaft", f"{who} has zookeeper.metadata.migration.enable=true: take it out first")
    is_on, is_on_here = bool(theirs.get("authorizer.class.name")), bool(config.get("authorizer.class.name"))
    if is_on != is_on_here:
        text = (
            "has an authorizer, and this broker has none"
            if is_on
            else "has no authorizer, and this broker has one"
        )
        yield stop("security", f"{who} {text}: set authorizer.class.name as the others have it")


def _version(text: str) -> tuple[int, int] | None:
    """`3.5-IV2` is (3, 5)."""
    parts = text.partition("-")[0].split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return None


def first_line(found: Sequence[Finding]) -> str | None:
    return next((each.text for each in found if each.stops), None)
