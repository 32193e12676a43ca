"""Facts of clusters: a healthy one, and one with every fault that the doctor knows."""

from __future__ import annotations

from typing import Any

from penstock.admin.health import (
    BrokerHealth,
    BrokerView,
    DamagedPartition,
    FailedDirectory,
    Health,
    PartitionState,
    Told,
)
from penstock.admin.strays import StrayTopic
from penstock.advice.doctor.facts import (
    BrokerFacts,
    DirectoryFacts,
    Facts,
    GroupFacts,
    PartitionFacts,
    ReplicaFacts,
    ServiceFacts,
    Setting,
    TopicFacts,
)
from penstock.model.ids import TopicPartition
from penstock.model.strays import FoundStray

NOW_MS = 1_800_000_000_000
GB = 1_000_000_000
USUAL = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "2",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "default.replication.factor": "3",
}


def partition(topic: str, number: int = 0, **known: Any) -> PartitionFacts:
    """Three replicas, all in sync, a thousand records; nothing was written between the looks."""
    order = [1 + (number + each) % 3 for each in range(3)]
    usual: dict[str, Any] = {
        "leader": order[0],
        "replicas": tuple(order),
        "isr": tuple(order),
        "start_offset": 0,
        "end_offset": 1000,
        "end_before": 1000,
        "newest_ms": NOW_MS - 1000,
    }
    return PartitionFacts(TopicPartition(topic, number), **{**usual, **known})


def topic(name: str, **settings: str) -> TopicFacts:
    own = {key.replace("_", "."): value for key, value in settings.items()}
    return TopicFacts(name, {key: Setting(value, key in own) for key, value in {**USUAL, **own}.items()})


def broker(number: int, **settings: str) -> BrokerFacts:
    own = {key.replace("_", "."): value for key, value in settings.items()}
    values = {key: Setting(value) for key, value in {**LISTENERS, **own}.items()}
    return BrokerFacts(
        number, "127.0.0.1", 9091 + number, apis={3: (0, 13)}, cluster_id="ours", settings=values
    )


def health(**known: Any) -> Health:
    usual: dict[str, Any] = {
        "cluster_id": "ours",
        "controller": 1,
        "brokers": [BrokerHealth(number, f"127.0.0.1:909{number + 1}", None, 3, 1) for number in (1, 2, 3)],
        "missing_brokers": [],
        "num_partitions": 3,
        "under_replicated": [],
        "offline": [],
        "below_min_isr": [],
        "not_preferred": [],
    }
    return Health(**{**usual, **known})


def facts(**known: Any) -> Facts:
    """A healthy cluster of three brokers, looked at for ten seconds."""
    parts = tuple(partition("orders", number) for number in range(3))
    usual: dict[str, Any] = {
        "health": health(),
        "brokers": tuple(broker(number) for number in (1, 2, 3)),
        "topics": (topic("orders"),),
        "partitions": parts,
        "replicas": tuple(
            ReplicaFacts(each, "/data", part.partition, 1 * GB, 1 * GB)
            for part in parts
            for each in part.replicas
        ),
        "directories": tuple(DirectoryFacts(each, "/data", 1000 * GB, 900 * GB) for each in (1, 2, 3)),
        "groups": (GroupFacts("billing", "Stable", {parts[0].partition: 990}, {parts[0].partition: 980}),),
        "bootstrap_hosts": ("127.0.0.1",),
        "between_s": 10.0,
        "first_look_ms": NOW_MS - 10_000,
        "last_look_ms": NOW_MS,
    }
    return Facts(**{**usual, **known})


def state(name: str, leader: int = 1, isr: list[int] | None = None) -> PartitionState:
    return PartitionState(TopicPartition(name, 0), leader, [1, 2, 3], [1] if isr is None else isr)


def stray(name: str, identity: bytes) -> FoundStray:
    return FoundStray(2, "/data", f"{name}-0.x-stray", name, 0, identity, 5_000, 0, 10, 1, NOW_MS)


def very_ill() -> Facts:
    """One of each fault; names need quoting in a shell."""
    lost, kept = bytes(15) + b"\1", bytes(15) + b"\2"
    here = TopicPartition("orders", 0)
    hot = tuple(
        partition("hot", number, end_offset=1000 + (number == 0) * 90_000 + 10) for number in range(4)
    )
    return facts(
        unreachable="cannot reach the broker at nowhere:9092",
        services=(
            ServiceFacts("registry", "not running", "./my data"),
            ServiceFacts("broker-1", None, "./my data"),
        ),
        unseen=("groups of broker 2: Not authorized",),
        bootstrap_hosts=("kafka.example.com",),
        health=health(
            controller=None,
            missing_brokers=[4],
            offline=[state("gone", -1)],
            below_min_isr=[state("below")],
            under_replicated=[state("under", isr=[1, 2])],
            not_preferred=[state("moved", 2, [1, 2, 3])],
            lost=(StrayTopic("lost", lost, [stray("lost", lost)], None, 0),),
            told=Told(
                damaged=(DamagedPartition(here, 1, 77, "a checksum is wrong", 1),),
                strays=(stray("lost", lost), stray("kept", kept)),
                failed_directories=(FailedDirectory(2, "/data", "Input/output error"),),
                without_session=((3, "does not answer"),),
                disagreeing=(BrokerView(3, 2, (3,)),),
            ),
        ),
        brokers=(
            broker(1, listeners="PLAINTEXT://0.0.0.0:9092,SASL_PLAINTEXT://:9093")._replace(rack="a"),
            broker(2, default_replication_factor="1")._replace(rack="a", problem="connection refused"),
            broker(3)._replace(rack="b", cluster_id="another", apis={3: (0, 12)}),
        ),
        topics=(
            topic("orders"),
            topic("single one"),
            topic("careless", min_insync_replicas="1", unclean_leader_election_enable="true"),
            topic("stopping", min_insync_replicas="3"),
            topic("impossible", min_insync_replicas="4"),
            topic("small", segment_bytes="1048576", max_message_bytes="50000000", retention_ms="-1"),
            topic("hot"),
            topic("__consumer_offsets", min_insync_replicas="1"),
            topic("__transaction_state", min_insync_replicas="3"),
        ),
        partitions=(
            *(partition("orders", number) for number in range(3)),
            partition("single one", replicas=(1,), isr=(1,)),
            partition("careless", leader=1, replicas=(1, 2), isr=(1, 2)),
            partition("careless", 1),
            partition("stopping"),
            partition("impossible", newest_ms=NOW_MS * 1000),
            partition("small"),
            *hot,
            partition("__consumer_offsets", replicas=(1,), isr=(1,), newest_ms=NOW_MS + 60_000),
            partition("__transaction_state"),
            *(partition("many", number, leader=1, replicas=(1,), isr=(1,)) for number in range(5_000)),
        ),
        replicas=(
            *(ReplicaFacts(1, "/data", one.partition, 20 * GB, 10 * GB) for one in hot[:1]),
            *(ReplicaFacts(2, "/data", one.partition, 1 * GB, 1 * GB) for one in hot[1:]),
        ),
        directories=(
            DirectoryFacts(1, "/data", 1000 * GB, 20 * GB),
            DirectoryFacts(2, "/data", 1000 * GB, 900 * GB),
        ),
        groups=(
            GroupFacts("stuck's group", "Stable", {hot[0].partition: 0}, {hot[0].partition: 0}),
            GroupFacts("nobody", "Empty", {here: 10}, {here: 10}),
            GroupFacts("console-consumer-77", "Empty", {here: 10}, {here: 10}),
            GroupFacts("before the start", "Stable", {here: 5000}, {here: 5000}),
        ),
    )
