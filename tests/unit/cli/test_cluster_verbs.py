"""Which cluster a command acts on, and what a box is after it."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.admin.facets.brokers import Broker
from penstock.admin.health import PartitionState
from penstock.cli.broker import parser, read_sets
from penstock.cli.verbs import cluster as verbs
from penstock.cli.verbs.common_options import connected
from penstock.cli.verbs.output import Column, cells
from penstock.client.clients import Connection
from penstock.model.endpoints import Address
from penstock.model.ids import TopicPartition
from penstock.stack.replicas import not_in_sync
from penstock.stack.stack import Stack
from penstock.stack.stack_file import existing_stack
from tests.unit.stack.stacks import asked, made

OTHER = {"PENSTOCK_BOOTSTRAP": "other:1"}


def grown(directory: Path, brokers: int) -> Stack:
    return made(directory, asked(brokers=brokers))


@click.group()
@connected
def group(connection: Connection) -> None:
    pass


@group.command()
@connected
def show(connection: Connection) -> None:
    click.echo(f"{connection.bootstrap} {connection.properties.get('client.id')}")


@pytest.mark.parametrize("environment", [{}, OTHER])
@pytest.mark.parametrize(
    ("words", "address"),
    [
        (["-b", "here:1", "show"], "here:1"),
        (["show", "-b", "here:1"], "here:1"),
        (["-b", "there:1", "show", "-b", "here:1"], "here:1"),
    ],
)
def test_an_address_counts_at_the_group_and_nearer_at_the_command(
    words: list[str], address: str, environment: dict[str, str]
) -> None:
    assert CliRunner(env=environment).invoke(group, words).output == f"{address} None\n"


def test_where_the_command_line_says_nothing_the_environment_counts() -> None:
    assert CliRunner(env=OTHER).invoke(group, ["show"]).output == "other:1 None\n"
    assert CliRunner().invoke(group, ["show"]).output == "localhost:9092 None\n"


def test_a_properties_file_counts_at_the_group(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("client.id=me\n")
    words = ["--command-config", str(path), "show"]
    assert CliRunner().invoke(group, words).output == "localhost:9092 me\n"


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (["remove", "2"], "127.0.0.1:9092,127.0.0.1:9093"),
        (["remove", "2", "-b", "here:1"], "here:1"),
        (["-b", "here:1", "remove", "2"], "here:1"),
    ],
)
def test_the_broker_that_is_drained_is_the_one_of_the_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], address: str
) -> None:
    grown(tmp_path, 2)
    drained: list[str] = []
    monkeypatch.setattr(verbs, "_drain", lambda connection, *_: drained.append(connection.bootstrap))
    done = CliRunner(env=OTHER).invoke(verbs.cluster, [*words, "--data", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert drained == [address]


def test_what_joined_a_box_while_a_broker_was_drained_stays_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(tmp_path, 2)
    monkeypatch.setattr(verbs, "_drain", lambda *_: grown(tmp_path, 3))
    done = CliRunner().invoke(verbs.cluster, ["remove", "2", "--data", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert [member.name for member in existing_stack(tmp_path).members_of("broker")] == [
        "broker-1",
        "broker-3",
    ]


def test_replicas_of_brokersthat_are_away_are_not_waited_for() -> None:
    def state(index: int, leader: int, replicas: list[int], isr: list[int]) -> PartitionState:
        return PartitionState(TopicPartition("orders", index), leader, replicas, isr)

    states = [
        state(0, 1, [1, 2, 3], [1, 2]),
        state(1, 1, [1, 2, 3], [1]),
        state(2, -1, [3], [3]),
        state(3, -1, [1, 3], [1, 3]),
        state(4, 2, [2, 1], [2, 1]),
    ]
    assert [one.partition.partition for one in not_in_sync(states, {3})] == [1, 3]
    assert [one.partition.partition for one in not_in_sync(states, ())] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("host", "written"), [("::1", "[::1]"), ("[::1]", "[::1]"), ("127.0.0.1", "127.0.0.1")]
)
def test_a_broker_listens_on_addresses_of_both_families(host: str, written: str) -> None:
    sets = read_sets(parser().parse_args(["--host", host, "--port", "9093", "--metrics-port", "9100"]))
    assert sets["listeners"] == f"PLAINTEXT://{written}:9093"
    assert sets["penstock.metrics.listener"] == f"{written}:9100"


def test_addresses_in_tables_are_written_as_addresses() -> None:
    columns: list[Column[Address]] = [
        Column(None, lambda one: one, "one"),
        Column(None, lambda one: [one, one], "several"),
    ]
    rows = [Address("127.0.0.1", 29392), Address("::1", 9092)]
    assert cells(rows, columns)[1] == [
        [rows[0], "127.0.0.1:29392,127.0.0.1:29392"],
        [rows[1], "[::1]:9092,[::1]:9092"],
    ]
    broker = Broker(1, "127.0.0.1", 29392, None)
    assert [str(cell) for cell in cells([broker], verbs.BROKERS)[1][0]] == ["1", "127.0.0.1:29392", ""]
