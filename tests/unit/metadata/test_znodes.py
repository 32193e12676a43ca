"""Kafka's nodes, byte for byte as a running Kafka 3.9.1 wrote them."""

import pytest

from penstock.metadata import znodes
from penstock.metadata.image import BrokerRegistration, PartitionRegistration
from penstock.model.endpoints import Endpoint
from penstock.model.ids import id_from_text

ORDERS_ID = id_from_text("X1tNaUdQQ0eXaG9e2pPx1g")


def test_a_broker_registers_as_kafka_does() -> None:
    node = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://127.0.0.1:13092"],"jmx_port":-1,"port":13092,"host":"127.0.0.1",'
        b'"version":5,"timestamp":"1794737892214"}'
    )
    broker = BrokerRegistration(1, {"PLAINTEXT": Endpoint("PLAINTEXT", "127.0.0.1", 13092, "PLAINTEXT")})
    assert znodes.encode_broker(broker, now_ms=1794737892214) == node
    assert znodes.decode_broker(1, node) == broker


def test_listeners_rack_and_ipv6_survive_registration() -> None:
    broker = BrokerRegistration(
        7,
        {
            "INSIDE": Endpoint("INSIDE", "::1", 9092, "SASL_SSL"),
            "OUTSIDE": Endpoint("OUTSIDE", "example.org", 9093, "SSL"),
        },
        "rack-a",
    )
    node = znodes.encode_broker(broker, now_ms=1)
    assert b'"endpoints":["INSIDE://[::1]:9092","OUTSIDE://example.org:9093"],"rack":"rack-a"' in node
    assert b'"port":-1,"host":null' in node
    assert znodes.decode_broker(7, node) == broker


def test_an_old_registration_has_one_plaintext_listener() -> None:
    node = b'{"version":1,"host":"localhost","port":9092,"jmx_port":9999,"timestamp":"2233345666"}'
    assert znodes.decode_broker(1, node).endpoints == {
        "PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT")
    }


def test_a_topic_is_written_as_kafka_does() -> None:
    node = (
        b'{"partitions":{"0":[1],"1":[1]},"topic_id":"X1tNaUdQQ0eXaG9e2pPx1g","adding_replicas":{},'
        b'"removing_replicas":{},"version":3}'
    )
    assert znodes.encode_topic(ORDERS_ID, [PartitionRegistration((1,), (1,), 1)] * 2) == node
    assert znodes.decode_topic("orders", node) == (ORDERS_ID, [znodes.Assignment((1,))] * 2)


def test_partitions_are_read_in_order_whatever_the_order_of_the_keys() -> None:
    node = b'{"partitions":{"10":[3],"1":[2],"0":[1],' + b",".join(b'"%d":[9]' % n for n in range(2, 10))
    _, assignments = znodes.decode_topic("orders", node + b'},"adding_replicas":{"1":[4]},"version":2}')
    assert [a.replicas[0] for a in assignments] == [1, 2, *[9] * 8, 3]
    assert assignments[1].adding == (4,)


def test_a_partitions_state_is_written_as_kafka_does() -> None:
    node = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    assert znodes.encode_partition_state(PartitionRegistration((1,), (1,), 1), controller_epoch=1) == node
    assert znodes.decode_partition_state("/x", node) == znodes.PartitionState(1, 0, (1,), 1)


def test_configs_are_written_as_kafka_does() -> None:
    node = b'{"version":1,"config":{"retention.ms":"60000"}}'
    assert znodes.encode_config({"retention.ms": "60000"}) == node
    assert znodes.decode_config("/x", node) == {"retention.ms": "60000"}
    assert znodes.decode_config("/x", b"") == {}
    assert znodes.encode_config_change("users/alice") == b'{"version":2,"entity_path":"users/alice"}'


def test_the_small_nodes_are_written_as_kafka_does() -> None:
    assert znodes.encode_cluster_id("qirv") == b'{"version":"1","id":"qirv"}'
    assert znodes.decode_cluster_id(b'{"version":"1","id":"qirv"}') == "qirv"
    controller = b'{"version":2,"brokerid":1,"timestamp":"1794737892364","kraftControllerEpoch":-1}'
    assert znodes.encode_controller(1, now_ms=1794737892364) == controller
    assert znodes.decode_controller(controller) == 1
    assert znodes.encode_controller_epoch(1) == b"1"
    assert znodes.decode_controller_epoch(b"12") == 12
    block = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    assert znodes.encode_producer_id_block(znodes.ProducerIdBlock(1, 0, 999)) == block
    assert znodes.decode_producer_id_block(block) == znodes.ProducerIdBlock(1, 0, 999)
    assert znodes.decode_producer_id_block(b"") is None


def test_paths_are_kafkas() -> None:
    assert znodes.partition_state_path("orders", 3) == "/brokers/topics/orders/partitions/3/state"
    assert znodes.config_path("topics", "orders") == "/config/topics/orders"
    assert znodes.config_path("brokers", "<default>") == "/config/brokers/<default>"
    assert znodes.user_config_path("alice") == "/config/users/alice"
    assert znodes.user_config_path("alice", "app") == "/config/users/alice/clients/app"


@pytest.mark.parametrize("name", ["alice", "a/b", "CN=x, OU=y", "é€", "..", ".", "100%", "a b+c*d~"])
def test_any_name_fits_into_a_path_and_comes_back(name: str) -> None:
    text = znodes.sanitize(name)
    assert "/" not in text
    assert text not in (".", "..")
    assert znodes.desanitize(text) == name


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b'{"partitions":{"1":[1]}}', b'{"partitions":3}'])
def test_a_node_that_cannot_be_read_is_named(data: bytes) -> None:
    with pytest.raises(znodes.BadNode, match="/brokers/topics/orders cannot be read"):
        znodes.decode_topic("orders", data)
