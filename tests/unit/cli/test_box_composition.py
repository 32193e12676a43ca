"""What belongs to a cluster in a box."""

import socket
from pathlib import Path

import pytest

from penstock.cli.box.composition import (
    Box,
    Wish,
    command_of,
    compose,
    existing_box,
    free_ports,
    read_box,
    write_box,
)
from penstock.cli.failures import UserError


def made(directory: Path, wish: Wish) -> Box:
    directory.mkdir(exist_ok=True)
    box = compose(directory, read_box(directory), wish)
    write_box(box)
    return box


def test_a_new_box_has_one_broker_where_everybody_expects_it(tmp_path: Path) -> None:
    box = made(tmp_path, Wish())
    assert [(member.name, member.port) for member in box.members] == [("zookeeper", 2181), ("broker-1", 9092)]
    assert box.connect == "127.0.0.1:2181"


def test_a_box_remembers_what_it_was_made_with(tmp_path: Path) -> None:
    box = made(tmp_path, Wish(brokers=3, port=19092, settings=("num.partitions=6",), host="127.0.0.1"))
    assert read_box(tmp_path) == box
    assert made(tmp_path, Wish()) == box
    assert box.bootstrap == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"


def test_a_box_grows_by_brokers(tmp_path: Path) -> None:
    made(tmp_path, Wish(brokers=2))
    box = made(tmp_path, Wish(brokers=4))
    assert [(member.number, member.port) for member in box.brokers] == [
        (1, 9092),
        (2, 9093),
        (3, 9094),
        (4, 9095),
    ]


def test_a_box_on_free_ports_grows_on_free_ports(tmp_path: Path) -> None:
    box = compose(tmp_path, None, Wish(brokers=2, port=0, zookeeper_port=0))
    first, second = box.brokers
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as other:  # where the third would be, did they follow one another
        port = int(other.getsockname()[1])
        apart = (first._replace(port=port - 2), second._replace(port=port + 2))
        grown = compose(tmp_path, box._replace(members=(*box.zookeepers, *apart)), Wish(brokers=3))
    assert grown.brokers[-1].port not in (0, port - 2, port, port + 2)


def test_a_broker_that_was_taken_out_leaves_its_number_free(tmp_path: Path) -> None:
    box = made(tmp_path, Wish(brokers=3))
    write_box(box._replace(members=tuple(one for one in box.members if one.name != "broker-2")))
    assert [member.name for member in made(tmp_path, Wish()).brokers] == ["broker-1", "broker-3"]
    grown = made(tmp_path, Wish(brokers=3))
    assert {(member.name, member.port) for member in grown.brokers} == {
        ("broker-1", 9092),
        ("broker-2", 9093),
        ("broker-3", 9094),
    }


def test_three_servers_know_one_another(tmp_path: Path) -> None:
    box = made(tmp_path, Wish(zookeepers=3, zookeeper_port=0))
    assert [member.name for member in box.zookeepers] == ["zookeeper-1", "zookeeper-2", "zookeeper-3"]
    ports = [(one.port, one.quorum_port, one.election_port) for one in box.zookeepers]
    assert len({port for three in ports for port in three}) == 9
    assert box.connect.count(",") == 2


def test_members_with_the_same_port_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"zookeeper and broker-3 would both have port 2181: choose others"):
        made(tmp_path, Wish(brokers=3, port=2179))
    assert read_box(tmp_path) is None
    made(tmp_path, Wish(brokers=2, port=2179))
    with pytest.raises(UserError, match="would both have port 2181"):
        made(tmp_path, Wish(brokers=3))
    assert len({member.port for member in made(tmp_path, Wish(brokers=3, port=0)).members}) == 4


def test_the_first_port_stays_when_the_first_broker_was_taken_out(tmp_path: Path) -> None:
    box = made(tmp_path, Wish(brokers=3, port=19092))
    write_box(box._replace(members=tuple(one for one in box.members if one.name != "broker-1")))
    again = made(tmp_path, Wish(brokers=3, port=19092))
    assert again.member("broker-1").port == 19092
    with pytest.raises(UserError, match="was made with --port 19092"):
        made(tmp_path, Wish(port=19093))


def test_free_ports_are_none_of_those_that_are_given_away() -> None:
    first = free_ports(50)
    assert len({*first, *free_ports(50, apart_from=first)}) == 100


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_of_ipv6_has_brackets_before_its_port(tmp_path: Path, host: str) -> None:
    box = made(tmp_path, Wish(brokers=2, host=host))
    assert box.bootstrap == "[::1]:9092,[::1]:9093"
    assert box.broker_host == "::1"


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        (Wish(port=1000), "was made with --port 9092"),
        (Wish(zookeeper_port=1000), "was made with --zookeeper-port 2181"),
        (Wish(zookeepers=3), "has 1 ZooKeeper servers"),
        (Wish(brokers=1), "take one out with penstock cluster remove"),
        (Wish(brokers=101), "at most 100 brokers"),
    ],
)
def test_what_is_there_stays_as_it_is(tmp_path: Path, wish: Wish, complaint: str) -> None:
    made(tmp_path, Wish(brokers=2))
    with pytest.raises(UserError, match=complaint):
        made(tmp_path, wish)


def test_the_log_of_a_single_broker_is_not_taken_for_a_box(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\n")
    with pytest.raises(UserError, match="holds the log of a single broker"):
        made(tmp_path, Wish())


def test_a_box_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text("[]")
    with pytest.raises(UserError, match="does not describe a cluster"):
        read_box(tmp_path)
    with pytest.raises(UserError, match="there is no cluster in"):
        existing_box(tmp_path / "nowhere")


def test_ports_end_at_65535(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="65536 is not a port"):
        made(tmp_path, Wish(brokers=2, port=65535))


def test_a_broker_is_started_as_on_a_machine_of_its_own(tmp_path: Path) -> None:
    box = made(tmp_path, Wish(brokers=2, settings=("num.partitions=6",)))
    words = " ".join(command_of(box, box.member("broker-2")))
    assert f"broker --zookeeper 127.0.0.1:2181 --broker-id 2 --port 9093 --data {tmp_path}/broker-2" in words
    assert "--set offsets.topic.replication.factor=2" in words
    assert words.endswith("--set num.partitions=6")


def test_a_name_that_is_not_in_the_box_is_answered_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no 'broker-7' in .*: there are zookeeper, broker-1"):
        made(tmp_path, Wish()).member("broker-7")


def test_a_name_that_comes_twice_is_one_member(tmp_path: Path) -> None:
    box = made(tmp_path, Wish(brokers=2))
    assert [member.name for member in box.chosen(["broker-2", "broker-1", "broker-2"])] == [
        "broker-2",
        "broker-1",
    ]
