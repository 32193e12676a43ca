"""What a broker of a cluster says its address is, where nobody said it."""

from penstock.broker.process import host_towards


def test_it_is_the_address_on_the_way_to_zookeeper() -> None:
    assert host_towards("127.0.0.1:2181/kafka") == "127.0.0.1"
    assert host_towards("no-such-host.invalid:2181,127.0.0.1:2181") == "127.0.0.1"


def test_without_a_way_it_is_localhost() -> None:
    assert host_towards("no-such-host.invalid:2181") == "localhost"
