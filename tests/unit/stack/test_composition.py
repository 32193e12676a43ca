"""What belongs to a stack."""

import socket
from pathlib import Path

import pytest

from penstock.client.errors import UserError
from penstock.stack.brokers import SERVICE, bootstrap_of
from penstock.stack.composition import ServiceWish, Wish, compose
from penstock.stack.ports import free_ports
from penstock.stack.services import SERVICES
from penstock.stack.stack_file import existing_stack, read_stack, write_stack
from tests.unit.stack.stacks import asked, made


def test_a_new_box_has_one_broker_where_everybody_expects_it(tmp_path: Path) -> None:
    stack = made(tmp_path, asked())
    assert [(member.name, member.port) for member in stack.members] == [
        ("zookeeper", 2181),
        ("broker-1", 9092),
    ]
    assert stack.addresses_of("zookeeper") == "127.0.0.1:2181"


def test_a_box_remembers_what_it_was_made_with(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(brokers=3, port=19092, settings=("num.partitions=6",), host="127.0.0.1"))
    assert read_stack(tmp_path) == stack
    assert made(tmp_path, asked()) == stack
    assert bootstrap_of(stack) == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"


def test_a_box_grows_by_brokers(tmp_path: Path) -> None:
    made(tmp_path, asked(brokers=2))
    stack = made(tmp_path, asked(brokers=4))
    assert [(member.number, member.port) for member in stack.members_of("broker")] == [
        (1, 9092),
        (2, 9093),
        (3, 9094),
        (4, 9095),
    ]


def test_a_box_on_free_ports_grows_on_free_ports(tmp_path: Path) -> None:
    stack = compose(tmp_path, None, asked(brokers=2, port=0, zookeeper_port=0), SERVICES)
    first, second = stack.members_of("broker")
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as other:  # where the third would be, did they follow one another
        port = int(other.getsockname()[1])
        apart = (first._replace(port=port - 2), second._replace(port=port + 2))
        there = stack._replace(members=(*stack.members_of("zookeeper"), *apart))
        grown = compose(tmp_path, there, asked(brokers=3), SERVICES)
    assert grown.members_of("broker")[-1].port not in (0, port - 2, port, port + 2)


def test_a_broker_that_was_taken_out_leaves_its_number_free(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(brokers=3))
    write_stack(stack._replace(members=tuple(one for one in stack.members if one.name != "broker-2")))
    assert [member.name for member in made(tmp_path, asked()).members_of("broker")] == [
        "broker-1",
        "broker-3",
    ]
    grown = made(tmp_path, asked(brokers=3))
    assert {(member.name, member.port) for member in grown.members_of("broker")} == {
        ("broker-1", 9092),
        ("broker-2", 9093),
        ("broker-3", 9094),
    }


def test_three_servers_know_one_another(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(zookeepers=3, zookeeper_port=0))
    assert [member.name for member in stack.members_of("zookeeper")] == [
        "zookeeper-1",
        "zookeeper-2",
        "zookeeper-3",
    ]
    ports = [one.ports for one in stack.members_of("zookeeper")]
    assert len({port for three in ports for port in three}) == 9
    assert stack.addresses_of("zookeeper").count(",") == 2


def test_members_with_the_same_port_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"zookeeper and broker-3 would both have port 2181: choose others"):
        made(tmp_path, asked(brokers=3, port=2179))
    assert read_stack(tmp_path) is None
    made(tmp_path, asked(brokers=2, port=2179))
    with pytest.raises(UserError, match="would both have port 2181"):
        made(tmp_path, asked(brokers=3))
    assert len({member.port for member in made(tmp_path, asked(brokers=3, port=0)).members}) == 4


def test_the_first_port_stays_when_the_first_broker_was_taken_out(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(brokers=3, port=19092))
    write_stack(stack._replace(members=tuple(one for one in stack.members if one.name != "broker-1")))
    again = made(tmp_path, asked(brokers=3, port=19092))
    assert again.member("broker-1").port == 19092
    with pytest.raises(UserError, match="was made with --port 19092"):
        made(tmp_path, asked(port=19093))


def test_free_ports_are_none_of_those_that_are_given_away() -> None:
    first = free_ports(50)
    assert len({*first, *free_ports(50, apart_from=first)}) == 100


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_of_ipv6_has_brackets_before_its_port(tmp_path: Path, host: str) -> None:
    stack = made(tmp_path, asked(brokers=2, host=host))
    assert bootstrap_of(stack) == "[::1]:9092,[::1]:9093"
    assert stack.host == "::1"


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        (asked(port=1000), "was made with --port 9092"),
        (asked(zookeeper_port=1000), "was made with --zookeeper-port 2181"),
        (asked(zookeepers=3), "has 1 ZooKeeper servers"),
        (asked(brokers=1), "take one out with penstock cluster remove"),
        (asked(brokers=101), "at most 100 brokers"),
    ],
)
def test_what_is_there_stays_as_it_is(tmp_path: Path, wish: Wish, complaint: str) -> None:
    made(tmp_path, asked(brokers=2))
    with pytest.raises(UserError, match=complaint):
        made(tmp_path, wish)


def test_the_log_of_a_single_broker_is_not_taken_for_a_box(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\n")
    with pytest.raises(UserError, match="holds the log of a single broker"):
        made(tmp_path, asked())


def test_a_box_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text("[]")
    with pytest.raises(UserError, match="does not describe a cluster"):
        read_stack(tmp_path)
    with pytest.raises(UserError, match="there is no cluster in"):
        existing_stack(tmp_path / "nowhere")


def test_ports_end_at_65535(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="65536 is not a port"):
        made(tmp_path, asked(brokers=2, port=65535))


def test_a_broker_is_started_as_on_a_machine_of_its_own(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(brokers=2, settings=("num.partitions=6",)))
    words = " ".join(SERVICE.command(stack, stack.member("broker-2")))
    assert f"broker --zookeeper 127.0.0.1:2181 --broker-id 2 --port 9093 --data {tmp_path}/broker-2" in words
    assert "--set offsets.topic.replication.factor=2" in words
    assert words.endswith("--set num.partitions=6")


def test_a_name_that_is_not_in_the_box_is_answered_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no 'broker-7' in .*: there are zookeeper, broker-1"):
        made(tmp_path, asked()).member("broker-7")


def test_a_name_that_comes_twice_is_one_member(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(brokers=2))
    assert [member.name for member in stack.chosen(["broker-2", "broker-1", "broker-2"])] == [
        "broker-2",
        "broker-1",
    ]


def test_the_name_of_a_service_means_all_of_its_members(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(brokers=2))
    assert [member.name for member in stack.chosen(["broker", "broker-1", "zookeeper"])] == [
        "broker-1",
        "broker-2",
        "zookeeper",
    ]


def test_services_listen_on_loopback_unless_asked_otherwise(tmp_path: Path) -> None:
    stack = made(tmp_path / "closed", asked())
    assert "--host 127.0.0.1" in " ".join(SERVICE.command(stack, stack.member("broker-1")))
    stack = made(tmp_path / "open", asked(host="0.0.0.0"))
    assert "--host 0.0.0.0" in " ".join(SERVICE.command(stack, stack.member("broker-1")))
    assert bootstrap_of(stack) == "127.0.0.1:9092"
    assert stack.host_of(stack.member("zookeeper")) == "127.0.0.1"


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("num.partitions=many", "--set: .*num.partitions"),
        ("num.partitons=6", "--set: unknown option num.partitons; did you mean num.partitions?"),
        ("num.partitions", "--set takes NAME=VALUE, not 'num.partitions'"),
        ("=6", "--set takes NAME=VALUE, not '=6'"),
    ],
)
def test_settings_are_checked_before_they_are_remembered(
    tmp_path: Path, setting: str, complaint: str
) -> None:
    before = made(tmp_path, asked(settings=("num.partitions=6",)))
    with pytest.raises(UserError, match=complaint):
        made(tmp_path, asked(settings=(setting,)))
    assert read_stack(tmp_path) == before


def test_a_service_without_settings_refuses_them(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="zookeeper takes no settings"):
        made(tmp_path, Wish({"zookeeper": ServiceWish(settings=("tickTime=1",))}))


OLDER_FILE = """{
  "members": [
    {"name": "zookeeper-1", "kind": "zookeeper", "number": 1, "port": 2181, "quorum_port": 4001, "election_port": 4002},
    {"name": "broker-1", "kind": "broker", "number": 1, "port": 9092, "quorum_port": 0, "election_port": 0}
  ],
  "settings": ["num.partitions=6"],
  "host": null
}"""


def test_the_file_of_an_older_penstock_is_read(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text(OLDER_FILE)
    stack = existing_stack(tmp_path)
    assert [(member.service, member.ports) for member in stack.members] == [
        ("zookeeper", [2181, 4001, 4002]),
        ("broker", [9092]),
    ]
    assert stack.settings_of("broker") == ("num.partitions=6",)
    assert stack.host == "0.0.0.0"  # as it was
    write_stack(stack)
    assert existing_stack(tmp_path) == stack


def test_a_service_that_this_penstock_does_not_know_is_named(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text(OLDER_FILE.replace('"kind": "broker"', '"kind": "telegraph"'))
    with pytest.raises(UserError, match="has broker-1, and this Penstock knows no service 'telegraph'"):
        read_stack(tmp_path)
