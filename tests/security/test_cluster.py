"""Brokers of a cluster that enter one another's listeners by TLS and by logins."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.broker.requests.forwarding import MARK
from penstock.client.security import security_of
from penstock.client.wire_client import WireClient
from penstock.model.endpoints import Address
from penstock.stack.certificates import Authority
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.clients.driver import WAIT_S, wait_until

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = f'{MODULE} required username="broker" password="b-secret" user_broker="b-secret" user_ana="a-secret";'
RECORDS = 300


def listener_options(authority: Authority, protocol: str, port: int) -> dict[str, str]:
    options = {"listeners": f"{protocol}://127.0.0.1:{port}", "security.inter.broker.protocol": protocol}
    if protocol.endswith("SSL"):
        options |= {
            "ssl.keystore.location": str(authority.issue(f"broker-{port}").pem()),
            "ssl.truststore.location": str(authority.path),
            "ssl.client.auth": "required" if protocol == "SSL" else "none",
        }
    if protocol.startswith("SASL"):
        options |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": USERS,
        }
    return options


def client_options(authority: Authority, protocol: str, bootstrap: str) -> dict[str, str]:
    options = {"bootstrap.servers": bootstrap, "security.protocol": protocol.lower(), "log_level": "0"}
    if protocol.endswith("SSL"):
        options["ssl.ca.location"] = str(authority.path)
    if protocol == "SSL":
        issued = authority.issue("ana")
        options |= {"ssl.certificate.pem": issued.certificate_text(), "ssl.key.pem": issued.key_text()}
    if protocol.startswith("SASL"):
        options |= {"sasl.mechanisms": "PLAIN", "sasl.username": "ana", "sasl.password": "a-secret"}
    return options


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_a_secured_cluster_replicates_and_survives_a_kill(
    tmp_path: Path, authority: Authority, protocol: str
) -> None:
    ports = free_ports(3)
    options_of = {
        number: listener_options(authority, protocol, port) for number, port in enumerate(ports, start=1)
    }
    with PenstockCluster(
        tmp_path,
        ports=ports,
        options={"group.initial.rebalance.delay.ms": "0"},
        options_of=options_of,
        session_timeout_ms=3_000,
    ) as cluster:
        options = client_options(authority, protocol, cluster.bootstrap)
        admin = AdminClient(options)
        topic = NewTopic("orders", 3, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([topic])["orders"].result(WAIT_S)
        write(options, range(RECORDS))
        victim = admin.list_topics("orders", timeout=WAIT_S).topics["orders"].partitions[0].leader
        cluster.kill(victim)
        write(options, range(RECORDS, 2 * RECORDS))
        cluster.start(victim)
        assert read(options, 2 * RECORDS) == sorted(f"v{number}".encode() for number in range(2 * RECORDS))
        wait_until(lambda: is_in_sync(admin), "all replicas in sync")
        for broker_id in cluster.broker_ids:
            text = cluster.log_text(broker_id)
            assert "Traceback" not in text
            assert "b-secret" not in text


def write(options: Mapping[str, str], numbers: range) -> None:
    producer = Producer({**options, "acks": "all", "enable.idempotence": "true"})
    failures: list[object] = []
    for number in numbers:
        producer.produce(
            "orders",
            f"v{number}",
            partition=number % 3,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(WAIT_S) == 0
    assert not failures


def read(options: Mapping[str, str], count: int) -> list[bytes]:
    consumer = Consumer({**options, "group.id": "readers", "auto.offset.reset": "earliest"})
    values: list[bytes] = []
    try:
        consumer.assign([TopicPartition("orders", index, 0) for index in range(3)])
        wait_until(
            lambda: (
                values.extend(m.value() for m in consumer.consume(200, 0.2) if not m.error())
                or len(values) >= count
            ),
            "all records",
        )
    finally:
        consumer.close()
    return sorted(values)


def is_in_sync(admin: AdminClient) -> bool:
    partitions = admin.list_topics("orders", timeout=WAIT_S).topics["orders"].partitions.values()
    return all(len(partition.isrs) == 3 for partition in partitions)


def test_a_broker_that_others_do_not_let_in_says_why(tmp_path: Path, authority: Authority) -> None:
    """Its password is not the one that the others know."""
    ports = free_ports(2)
    options_of = {
        number: listener_options(authority, "SASL_PLAINTEXT", port)
        for number, port in enumerate(ports, start=1)
    }
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    options_of[2][name] = USERS.replace('password="b-secret"', 'password="wrong"')
    with PenstockCluster(tmp_path, ports=ports, options_of=options_of, session_timeout_ms=3_000) as cluster:
        admin = AdminClient(client_options(authority, "SASL_PLAINTEXT", cluster.bootstrap))
        admin.create_topics([NewTopic("orders", 6, 2)])
        wait_until(lambda: "refuses our login as broker" in cluster.log_text(2), "the reason in the log")


def test_a_broker_with_another_hosts_certificate_is_not_believed_by_others(
    tmp_path: Path, authority: Authority
) -> None:
    ports = free_ports(2)
    options_of = {
        number: listener_options(authority, "SSL", port) for number, port in enumerate(ports, start=1)
    }
    stray = authority.issue("stray", host="kafka.example.com").pem()
    options_of[2] |= {"ssl.keystore.location": str(stray)}
    with PenstockCluster(tmp_path, ports=ports, options_of=options_of, session_timeout_ms=3_000) as cluster:
        unchecked = {"ssl.endpoint.identification.algorithm": "none"}
        admin = AdminClient(client_options(authority, "SSL", cluster.bootstrap) | unchecked)
        admin.create_topics([NewTopic("orders", 6, 2)])
        complaint = "its certificate is not accepted: IP address mismatch"
        wait_until(lambda: complaint in cluster.log_text(1), "the reason in the log")


def test_connections_to_other_brokers_show_the_renewed_certificate(
    tmp_path: Path, authority: Authority
) -> None:
    """Broker 2 trusts nobody but a new authority after a while: the old certificate of broker 1 would keep it out."""
    later = Authority(tmp_path / "later")
    both = tmp_path / "both.pem"
    both.write_text(authority.path.read_text() + later.path.read_text())
    of_second = tmp_path / "of-second.pem"
    of_second.write_text(both.read_text())
    ports = free_ports(2)
    options_of = {
        number: listener_options(authority, "SSL", port) | {"ssl.truststore.location": str(trusted)}
        for number, port, trusted in zip((1, 2), ports, (both, of_second), strict=True)
    }
    common = {"offsets.topic.replication.factor": "2", "offsets.topic.num.partitions": "1"}
    with PenstockCluster(
        tmp_path, ports=ports, options=common, options_of=options_of, session_timeout_ms=3_000
    ) as cluster:
        options = client_options(later, "SSL", cluster.bootstrap) | {"ssl.ca.location": str(both)}
        topic = NewTopic("orders", 3, 2, config={"min.insync.replicas": "2"})
        admin = AdminClient(options)
        admin.create_topics([topic])["orders"].result(WAIT_S)
        renewed = later.issue("renewed")
        Path(options_of[1]["ssl.keystore.location"]).write_text(
            renewed.key_text() + renewed.certificate_text()
        )
        line = "connections to other brokers: the certificates are read anew"
        wait_until(lambda: line in cluster.log_text(1), "the renewed certificate")
        of_second.write_text(later.path.read_text())
        cluster.kill(2)
        cluster.start(2)
        write(options, range(RECORDS))
        assert read(options, RECORDS) == sorted(f"v{number}".encode() for number in range(RECORDS))


def test_brokers_log_in_at_one_another_again_before_their_logins_end(
    tmp_path: Path, authority: Authority
) -> None:
    """Their listener lets nobody in for longer than two seconds. No request fails for that, and no connection is cut off."""
    ports, inner = free_ports(2), free_ports(2)
    options_of = {}
    for number, (port, own) in enumerate(zip(ports, inner, strict=True), start=1):
        options = listener_options(authority, "SASL_SSL", port)
        options_of[number] = {
            name: text for name, text in options.items() if "inter.broker.protocol" not in name
        } | {
            "listeners": f"SASL_SSL://127.0.0.1:{port},INNER://127.0.0.1:{own}",
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,INNER:SASL_SSL",
            "inter.broker.listener.name": "INNER",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.inner.plain.sasl.jaas.config": USERS,
            "listener.name.inner.connections.max.reauth.ms": "2000",
        }
    with PenstockCluster(tmp_path, ports=ports, options_of=options_of, session_timeout_ms=6_000) as cluster:
        options = client_options(authority, "SASL_SSL", cluster.bootstrap)
        admin = AdminClient(options)
        topic = NewTopic("orders", 3, 2, config={"min.insync.replicas": "2"})
        admin.create_topics([topic])["orders"].result(WAIT_S)
        security = security_of(
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{MODULE} required username="ana" password="a-secret";',
                "ssl.truststore.location": str(authority.path),
            }
        )
        connections: set[tuple[str, str]] = set()
        codes: set[int] = set()
        rounds = 0

        def has_renewed_often() -> bool:
            nonlocal rounds
            rounds += 1
            write(options, range(30))
            for number, port in enumerate(ports):  # one of them is not the controller
                topic = CreatableTopic(
                    name=f"asked-{rounds}-{number}", num_partitions=1, replication_factor=1
                )
                request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
                with WireClient(Address("127.0.0.1", port), security=security, timeout_s=WAIT_S) as client:
                    codes.update(each.error_code for each in client.ask(request, CreateTopicsResponse).topics)
            connections.update(established(inner))
            return all(len([1 for _, own in connections if own == f"{port:04X}"]) >= 8 for port in inner)

        wait_until(has_renewed_often, "new connections between the brokers")
        assert codes == {0}
        for broker_id in cluster.broker_ids:
            text = cluster.log_text(broker_id)
            assert "its login is over" not in text
            assert "Traceback" not in text
            assert "cannot forward" not in text


def established(ports: list[int]) -> set[tuple[str, str]]:
    """The two ends, as the kernel writes them, of all connections to these ports but those of this process."""
    wanted = {f"{port:04X}" for port in ports}
    own = set()
    for entry in os.scandir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            own.add(os.readlink(entry.path))
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *_, inode = line.split()[:10]
        is_to_them = state == "01" and remote.rpartition(":")[2] in wanted
        if is_to_them and f"socket:[{inode}]" not in own:
            found.add((local.rpartition(":")[2], remote.rpartition(":")[2]))
    return found


def test_a_client_on_the_brokers_listener_cannot_say_that_a_broker_passed_its_request_on(
    tmp_path: Path, authority: Authority
) -> None:
    """Certificates tell who somebody is, and without an authorizer not that it is a broker."""
    ports = free_ports(2)
    options_of = {
        number: listener_options(authority, "SSL", port) for number, port in enumerate(ports, start=1)
    }
    issued = authority.issue("ana").pem()
    own = {"ssl.truststore.location": str(authority.path), "ssl.keystore.location": str(issued)}
    security = security_of({"security.protocol": "SSL", **own})
    with PenstockCluster(tmp_path, ports=ports, options_of=options_of, session_timeout_ms=3_000) as cluster:
        for number, port in enumerate(ports, start=1):  # one of them is not the controller
            topic = CreatableTopic(name=f"asked-{number}", num_partitions=1, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
            with WireClient(Address("127.0.0.1", port), security=security, timeout_s=WAIT_S) as client:
                answer = client.ask(request, CreateTopicsResponse)
            assert [each.error_code for each in answer.topics] == [0]
        forged = {"client.id": f"{MARK}User:admin 127.0.0.1;00 x"}
        admin = AdminClient(client_options(authority, "SSL", cluster.bootstrap) | forged)
        with pytest.raises(KafkaException) as refused:
            admin.create_topics([NewTopic("forged", 1, 1)])["forged"].result(WAIT_S)
        assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
        assert "no broker has proven that" in refused.value.args[0].str()
