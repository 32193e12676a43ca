"""Kafka's nodes: their paths, and their JSON as Kafka 3.9 writes it (same keys, same order, no spaces).

Readers are lenient where Kafka's are (older versions of a node, keys that are missing or unknown); what
cannot be read at all is a `BadNode` that names the path.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from penstock.metadata.image import (
    NO_BROKER_EPOCH,
    USER_CLIENTS,
    USERS,
    BrokerRegistration,
    PartitionRegistration,
)
from penstock.model.endpoints import Address, parse_endpoint
from penstock.model.ids import id_from_text, id_text
from penstock.model.tokens import DelegationToken

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
# Ours, not Kafka's: the brokers' epochs that a controller has acted upon.
BROKER_EPOCHS = "/brokers/epochs"
# Ours, too: proves to a broker that another has passed on a request.
SHARED_KEY = "/brokers/shared_key"
TOPICS = "/brokers/topics"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
DELETE_TOPICS = "/admin/delete_topics"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT = f"{LOG_DIR_EVENTS}/log_dir_event_"
LOG_DIR_FAILED = 1
TOKENS = "/delegation_token/tokens"
TOKEN_CHANGES = "/delegation_token/token_changes"
TOKEN_CHANGE = f"{TOKEN_CHANGES}/token_change_"

# What Kafka makes before anything else, parents first. The last three are not in Kafka's tree: its group and
# client metrics configs came only with KRaft.
PERSISTENT_PATHS = (
    "/admin", DELETE_TOPICS, "/brokers", BROKER_IDS, "/brokers/seqid", TOPICS, "/cluster", CONFIG,
    "/config/brokers", CONFIG_CHANGES, "/config/clients", "/config/ips", "/config/topics", "/config/users",
    "/consumers", "/isr_change_notification", PRODUCER_ID_BLOCK, LOG_DIR_EVENTS, FEATURE,
    "/delegation_token", TOKENS, TOKEN_CHANGES, "/config/groups", "/config/client-metrics", BROKER_EPOCHS,
)  # fmt: skip

FIRST_DATA = {FEATURE: b'{"features":{},"version":2,"status":1}'}


class BadNode(Exception):
    """A node's data is not what its path says it should be."""


class EpochsSeen(NamedTuple):
    """By broker id. `last`: the registration that a controller acted upon last, also of brokers that are gone while an ISR
    counts on them. `intact_since`: the earliest of those since which, as controllers have seen, its logs have lost nothing."""

    last: Mapping[int, int] = {}
    intact_since: Mapping[int, int] = {}


class PartitionState(NamedTuple):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    isr_epochs: tuple[int, ...] = ()


class Assignment(NamedTuple):
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class ProducerIdBlock(NamedTuple):
    """First and last id are both inside, as in Kafka's node."""

    broker_id: int
    first_id: int
    last_id: int


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def partitions_path(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def partition_path(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}"


def partition_state_path(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}/state"


def config_path(entity_type: str, entity_name: str) -> str:
    if entity_type == USER_CLIENTS:
        return f"{CONFIG}/{USERS}/{entity_name}"
    return f"{CONFIG}/{entity_type}/{sanitize(entity_name)}"


def config_entity(path: str) -> tuple[str, str] | None:
    """The type and the name of the entity whose configs are at the path, as the image has them; None for any other path."""
    entity_type, _, rest = path.removeprefix(f"{CONFIG}/").partition("/")
    if not rest:
        return None
    if "/" not in rest:
        return entity_type, desanitize(rest)
    user, _, client_id = rest.partition("/clients/")
    if entity_type != USERS or not client_id or "/" in user or "/" in client_id:
        return None
    return USER_CLIENTS, rest


def user_config_path(user: str, client_id: str | None = None) -> str:
    path = config_path("users", user)
    return path if client_id is None else f"{path}/clients/{sanitize(client_id)}"


def delete_topic_path(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


_UNESCAPED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._")


def sanitize(name: str) -> str:
    """Percent-encoded as Kafka's `Sanitizer` does, as groups and users may have names that no path may hold.

    Topic names, broker ids and `<default>` stay themselves.
    """
    if name == "<default>":
        return name
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return "".join(chr(byte) if byte in _UNESCAPED else f"%{byte:02X}" for byte in name.encode())


def desanitize(text: str) -> str:
    if "%" not in text:
        return text
    first, *rest = text.split("%")
    parts = [first.encode()]
    for part in rest:
        parts.append(bytes.fromhex(part[:2]) + part[2:].encode())
    return b"".join(parts).decode()


def encode_broker(broker: BrokerRegistration, *, now_ms: int, jmx_port: int = -1) -> bytes:
    plaintext = [e for e in broker.endpoints.values() if e.security_protocol == "PLAINTEXT"]
    node: dict[str, Any] = {
        # From 1 on: Kafka before 3.8 takes no lower minimum.
        "features": {
            name: {"min_version": 1, "max_version": level} for name, level in broker.features.items()
        },
        "listener_security_protocol_map": {
            e.listener: e.security_protocol for e in broker.endpoints.values()
        },
        "endpoints": [str(e) for e in broker.endpoints.values()],
    }
    if broker.rack is not None:
        node["rack"] = broker.rack
    if broker.intact_since != NO_BROKER_EPOCH:
        node["penstock_intact_since"] = (
            broker.intact_since
        )  # ours, not Kafka's, which passes over what it does not know
    node["jmx_port"] = jmx_port
    node["port"] = plaintext[0].port if plaintext else -1
    node["host"] = plaintext[0].host if plaintext else None
    node["version"] = 5
    node["timestamp"] = str(now_ms)
    return _encode(node)


def decode_broker(broker_id: int, data: bytes) -> BrokerRegistration:
    with _Reading(broker_path(broker_id)):
        node = json.loads(data)
        protocols = node.get("listener_security_protocol_map", {})
        texts = node.get("endpoints") or [f"PLAINTEXT://{Address(node['host'], node['port'])}"]
        endpoints = {
            e.listener: e._replace(security_protocol=protocols.get(e.listener, e.listener))
            for e in map(parse_endpoint, texts)
        }
        intact_since = int(node.get("penstock_intact_since", NO_BROKER_EPOCH))
        features = {
            str(name): int(levels["max_version"]) for name, levels in (node.get("features") or {}).items()
        }
        return BrokerRegistration(
            broker_id, endpoints, node.get("rack"), intact_since=intact_since, features=features
        )


def encode_broker_epochs(seen: EpochsSeen) -> bytes:
    return _encode(
        {
            "version": 1,
            "epochs": {str(id): epoch for id, epoch in sorted(seen.last.items())},
            "intact_since": {str(id): epoch for id, epoch in sorted(seen.intact_since.items())},
        }
    )


def decode_broker_epochs(data: bytes) -> EpochsSeen:
    if not data:
        return EpochsSeen()
    with _Reading(BROKER_EPOCHS):
        node = json.loads(data)
        last = {int(id): int(epoch) for id, epoch in node["epochs"].items()}
        earlier = {int(id): int(epoch) for id, epoch in node.get("intact_since", {}).items()}
        return EpochsSeen(last, {id: earlier.get(id, epoch) for id, epoch in last.items()})


def encode_topic(topic_id: bytes, partitions: Sequence[PartitionRegistration]) -> bytes:
    return _encode(
        {
            "partitions": {str(i): list(p.replicas) for i, p in enumerate(partitions)},
            "topic_id": id_text(topic_id),
            "adding_replicas": {str(i): list(p.adding) for i, p in enumerate(partitions) if p.adding},
            "removing_replicas": {str(i): list(p.removing) for i, p in enumerate(partitions) if p.removing},
            "version": 3,
        }
    )


def decode_topic(name: str, data: bytes) -> tuple[bytes, list[Assignment]]:
    """The topic's id (zeros where a version before 3 has none) and its assignments in order of partition."""
    with _Reading(topic_path(name)):
        node = json.loads(data)
        topic_id = id_from_text(node["topic_id"]) if "topic_id" in node else bytes(16)
        replicas = node["partitions"]
        adding, removing = node.get("adding_replicas", {}), node.get("removing_replicas", {})
        assignments = []
        for index in map(str, range(len(replicas))):
            assignments.append(
                Assignment(
                    tuple(replicas[index]), tuple(adding.get(index, ())), tuple(removing.get(index, ()))
                )
            )
        return topic_id, assignments


def encode_partition_state(partition: PartitionRegistration, *, controller_epoch: int) -> bytes:
    """By hand, as a controller writes thousands of these when a broker is lost: numbers only, nothing to escape."""
    isr = ",".join(map(str, partition.isr))
    epochs = ",".join(map(str, partition.isr_epochs))
    ours = f',"penstock_isr_epochs":[{epochs}]' if epochs else ""
    return (
        f'{{"controller_epoch":{controller_epoch},"leader":{partition.leader},"version":1,'
        f'"leader_epoch":{partition.leader_epoch},"isr":[{isr}]{ours}}}'
    ).encode()


def decode_partition_state(path: str, data: bytes) -> PartitionState:
    with _Reading(path):
        node = json.loads(data)
        isr, epochs = tuple(node["isr"]), tuple(node.get("penstock_isr_epochs", ()))
        return PartitionState(
            int(node["leader"]),
            int(node["leader_epoch"]),
            isr,
            int(node["controller_epoch"]),
            epochs if len(epochs) == len(isr) else (),
        )


def encode_config(overrides: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(overrides)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    if not data:
        return {}
    with _Reading(path):
        config = json.loads(data).get("config", {})
        return {str(name): str(value) for name, value in config.items()}


def encode_config_change(entity_path: str) -> bytes:
    """`entity_path` as in `topics/orders` or `users/alice/clients/app`, sanitised."""
    return _encode({"version": 2, "entity_path": entity_path})


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    with _Reading(CLUSTER_ID):
        return str(json.loads(data)["id"])


def encode_controller(broker_id: int, *, now_ms: int) -> bytes:
    return _encode(
        {"version": 2, "brokerid": broker_id, "timestamp": str(now_ms), "kraftControllerEpoch": -1}
    )


def decode_controller(data: bytes) -> int:
    with _Reading(CONTROLLER):
        return int(json.loads(data)["brokerid"])


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    with _Reading(CONTROLLER_EPOCH):
        return int(data)


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    return _encode(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first_id),
            "block_end": str(block.last_id),
        }
    )


def decode_producer_id_block(data: bytes) -> ProducerIdBlock | None:
    """None for the empty node that Kafka makes before the first block is handed out."""
    if not data:
        return None
    with _Reading(PRODUCER_ID_BLOCK):
        node = json.loads(data)
        return ProducerIdBlock(int(node["broker"]), int(node["block_start"]), int(node["block_end"]))


def encode_log_dir_event(broker_id: int) -> bytes:
    return _encode({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILED})


def decode_log_dir_event(path: str, data: bytes) -> int:
    """The broker whose log directory failed."""
    with _Reading(path):
        return int(json.loads(data)["broker"])


def token_path(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def encode_token(token: DelegationToken) -> bytes:
    """Without its secret: whoever can read this node cannot log in with it."""
    return _encode(
        {
            "version": 3,
            "owner": sanitize(token.owner),
            "tokenRequester": sanitize(token.requester),
            "renewers": list(map(sanitize, token.renewers)),
            "issueTimestamp": token.issued_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expires_ms,
            "tokenId": token.token_id,
        }
    )


def decode_token(path: str, data: bytes) -> DelegationToken:
    with _Reading(path):
        node = json.loads(data)
        owner = desanitize(node["owner"])
        return DelegationToken(
            str(node["tokenId"]),
            owner,
            desanitize(node["tokenRequester"]) if "tokenRequester" in node else owner,  # since version 3
            tuple(map(desanitize, node["renewers"])),
            issued_ms=int(node["issueTimestamp"]),
            max_ms=int(node["maxTimestamp"]),
            expires_ms=int(node["expiryTimestamp"]),
        )


def _encode(node: dict[str, Any]) -> bytes:
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()


class _Reading:
    """Turns whatever goes wrong while a node is taken apart into one error that names the node."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (ValueError, KeyError, TypeError, AttributeError)):
            raise BadNode(f"the metadata node {self.path} cannot be read: {error!r}") from error
