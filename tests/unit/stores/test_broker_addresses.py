"""A broker's address from its registration in ZooKeeper."""

import json

import pytest

from penstock.metadata.image import BrokerRegistration
from penstock.metadata.znodes import BadNode, decode_broker
from penstock.stores.broker_addresses import NoAddresses, addresses, listener_address


def registered(**node: object) -> BrokerRegistration:
    return decode_broker(1, json.dumps(node).encode())


def test_the_listener_of_the_wanted_protocol_is_taken() -> None:
    registration = registered(
        endpoints=["INSIDE://10.0.0.1:9092", "OUTSIDE://kafka.example.com:9093", "V6://[::1]:9094"],
        listener_security_protocol_map={"INSIDE": "PLAINTEXT", "OUTSIDE": "SASL_SSL", "V6": "SASL_PLAINTEXT"},
    )
    assert listener_address(registration, "PLAINTEXT") == "10.0.0.1:9092"
    assert listener_address(registration, "SASL_SSL") == "kafka.example.com:9093"
    assert listener_address(registration, "SASL_PLAINTEXT") == "[::1]:9094"
    assert listener_address(registration, "SSL") is None


def test_a_registration_of_an_old_broker_has_host_and_port_only() -> None:
    assert listener_address(registered(host="h", port=9092, version=1), "PLAINTEXT") == "h:9092"
    with pytest.raises(BadNode):
        registered(host=None, port=-1, endpoints=[])


@pytest.mark.parametrize("connect", ["", "127.0.0.1:1"])
def test_where_no_zookeeper_is_the_error_is_one_line(connect: str) -> None:
    with pytest.raises(NoAddresses) as caught:
        addresses(connect, timeout_s=1)
    assert "\n" not in str(caught.value)
