"""Access rules in a cluster of ours: requests that are passed on, forged marks, and what brokers do among themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from penstock.broker.requests.forwarding import MARK
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports
from penstock.wire.apis import APIS
from tests.clients.driver import WAIT_S, wait_until
from tests.security.guard_cases import request_of
from tests.security.guarded_broker import AUTHORIZER, LISTENER, PLAIN, ask

USERS = "".join(f' user_{name}="{name}"' for name in ("broker", "admin", "ana", "zoe"))
LOGIN = f'{PLAIN} username="broker" password="broker"{USERS};'
RECORDS = 50


class Guarded(NamedTuple):
    cluster: PenstockCluster
    ports: tuple[int, ...]

    def options(self, user: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.cluster.bootstrap,
            "security.protocol": LISTENER.lower(),
            "sasl.mechanisms": "PLAIN",
            "sasl.username": user,
            "sasl.password": user,
            "log_level": 0,
        }

    def controller_id(self) -> int:
        metadata = AdminClient(self.options("admin")).list_topics(timeout=WAIT_S)
        return int(metadata.controller_id)

    def ask(self, broker_id: int, user: str, api: str, version: int, client_id: str, **fields: Any) -> Any:
        address = Address("127.0.0.1", self.ports[broker_id - 1])
        return ask(address, user, request_of(api, **fields), version, client_id=client_id)

    def create(self, broker_id: int, user: str, name: str, client_id: str = "test") -> int:
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
        answer = self.ask(broker_id, user, "create_topics", 7, client_id, topics=topics, timeout_ms=30_000)
        return int(answer.topics[0].error_code)

    def log(self) -> str:
        return "".join(self.cluster.log_text(broker_id) for broker_id in self.cluster.broker_ids)


def allowed(kind: ResourceType, name: str, operation: AclOperation, host: str = "*") -> AclBinding:
    pattern, permission = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, "User:ana", host, operation, permission)


RULES = [
    allowed(ResourceType.TOPIC, "anas", AclOperation.CREATE),
    allowed(ResourceType.TOPIC, "anas-elsewhere", AclOperation.CREATE, "10.9.9.9"),
    allowed(ResourceType.TOPIC, "orders", AclOperation.READ),
    allowed(ResourceType.TOPIC, "orders", AclOperation.WRITE),
    allowed(ResourceType.GROUP, "readers", AclOperation.READ),
    allowed(ResourceType.TRANSACTIONAL_ID, "writer", AclOperation.WRITE),
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    ports = free_ports(2)
    options = {
        "security.inter.broker.protocol": LISTENER,
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": LOGIN,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:broker;User:admin",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "2",
        "transaction.state.log.replication.factor": "2",
        "transaction.state.log.num.partitions": "4",
    }
    options_of = {
        number: {"listeners": f"{LISTENER}://127.0.0.1:{port}"} for number, port in enumerate(ports, start=1)
    }
    directory = tmp_path_factory.mktemp("guarded")
    with PenstockCluster(
        directory, ports=ports, options=options, options_of=options_of, session_timeout_ms=6_000
    ) as cluster:
        found = Guarded(cluster, tuple(ports))
        admin = AdminClient(found.options("admin"))
        for made in admin.create_acls(RULES).values():
            made.result(WAIT_S)
        admin.create_topics([NewTopic("orders", 4, 2, config={"min.insync.replicas": "2"})])["orders"].result(
            WAIT_S
        )
        yield found
        assert "Traceback" not in found.log()


def test_a_request_that_is_passed_on_is_checked_for_the_client(guarded: Guarded) -> None:
    """Not for the broker that passes it on, which may do everything."""
    controller = guarded.controller_id()
    other = next(each for each in guarded.cluster.broker_ids if each != controller)
    for broker_id in (controller, other):
        assert guarded.create(broker_id, "ana", "zoes") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert guarded.create(broker_id, "ana", "anas-elsewhere") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert guarded.create(other, "ana", "anas") == ErrorCode.NONE
    denied = (
        "Principal = User:ana is Denied operation = CREATE from host = 127.0.0.1 on resource = TOPIC:zoes"
    )
    assert guarded.cluster.log_text(controller).count(denied) == 2
    assert denied not in guarded.cluster.log_text(other)


@pytest.mark.parametrize("who", ["User:admin 127.0.0.1", "User:broker 127.0.0.1", "User:ana 10.9.9.9"])
def test_a_forged_mark_gives_a_client_nothing(guarded: Guarded, who: str) -> None:
    controller = guarded.controller_id()
    for name in ("forged", "anas-elsewhere"):
        code = guarded.create(controller, "ana", name, client_id=f"{MARK}{who} test")
        assert code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_what_brokers_say_to_one_another_is_refused_to_clients(guarded: Guarded) -> None:
    for key, api in APIS.items():
        if api.between_brokers:
            module = ApiKey(key).name.lower()
            for broker_id in guarded.cluster.broker_ids:
                answer = guarded.ask(broker_id, "ana", module, api.max_version, "test")
                assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, module
    answer = guarded.ask(1, "ana", "add_partitions_to_txn", 4, "test", transactions=[])
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_client_cannot_fetch_as_a_follower(guarded: Guarded) -> None:
    fetched = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    topics = [{"topic": "orders", "partitions": [fetched]}]
    for broker_id in guarded.cluster.broker_ids:
        answer = guarded.ask(broker_id, "ana", "fetch", 12, "test", replica_id=1, topics=topics)
        (partition,) = answer.responses[0].partitions
        assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_transaction_over_both_brokers_needs_no_more_than_its_own_rights(guarded: Guarded) -> None:
    """Records are replicated, partitions admitted and markers written by brokers, in their own name."""
    producer = Producer({**guarded.options("ana"), "transactional.id": "writer", "acks": "all"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce("orders", f"v{number}", partition=number % 4)
    producer.commit_transaction(WAIT_S)
    consumer = Consumer(
        {
            **guarded.options("ana"),
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    values: set[bytes] = set()
    try:
        consumer.subscribe(["orders"])
        wait_until(
            lambda: (
                values.update(m.value() for m in consumer.consume(100, 0.5) if not m.error())
                or len(values) == RECORDS
            ),
            "all records",
        )
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    partitions = AdminClient(guarded.options("admin")).list_topics("orders", timeout=WAIT_S).topics["orders"]
    assert all(len(each.isrs) == 2 for each in partitions.partitions.values())
