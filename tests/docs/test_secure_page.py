"""The page about secured clusters: its tour is typed, and its move from plain to secured is made under load."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from penstock.client.clients import Connection
from penstock.config.properties import parse_properties
from penstock.stack import replicas
from penstock.testing.clusters import BrokerCluster, BrokerLaunch, create_topic, wait_until
from penstock.testing.penstock_broker import READY_LINE
from penstock.testing.processes import free_ports
from penstock.testing.zookeeper import ZooKeeperServer
from tests.cli.boxes import TestBox
from tests.cli.conftest import run_command
from tests.cluster.clients import SteadyProducer, values_in
from tests.docs.pages import HOW_TO, ROOT, blocks
from tests.docs.test_commands_shown import commands

PAGE = HOW_TO / "secure-a-cluster.md"
DEADLINE_S = 120
BROKERS = (1, 2, 3)
TOPIC, PARTITIONS = "orders", 3
SECRETS = {"broker": "b-secret", "admin": "ad-secret", "ana": "a-secret"}


def shell(text: str, bootstrap: str = "") -> str:
    done = subprocess.run(
        ["timeout", "-k", "5", str(DEADLINE_S), "sh", "-c", text],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PENSTOCK_BOOTSTRAP": bootstrap},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_tour_of_the_page_is_typed(tmp_path: Path) -> None:
    box = TestBox(tmp_path / "cluster")
    try:
        said = ""
        for command in commands(PAGE):
            text = command.replace("./cluster", str(box.directory))
            if "penstock up" in text:
                text += " --port 0 --zookeeper-port 0"
            elif "localhost:9092" in text:
                text = text.replace("localhost:9092", box.bootstrap)
            said += shell(text, "127.0.0.1:1")  # where nobody is: the file says where
        assert "hello" in said
        assert "ana" in said
        (program,) = blocks(PAGE.read_text(), "python")
        program = program.replace("./cluster", str(box.directory))
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == 0, done.stderr
        assert b"from Python".hex() in done.stdout.lower()
        assert box.run("down").code == 0
    finally:
        box.close()


class Files:
    """The brokers' server.properties, as the page changes them."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self.directory = directory
        numbers = iter(free_ports(2 * len(BROKERS)))
        self.plain = {number: next(numbers) for number in BROKERS}
        self.secured = {number: next(numbers) for number in BROKERS}
        self._options: dict[int, dict[str, str]] = {
            number: {
                "broker.id": str(number),
                "zookeeper.connect": zookeeper,
                "zookeeper.session.timeout.ms": "3000",
                "log.dirs": str(directory / f"broker-{number}" / "data"),
            }
            for number in BROKERS
        }

    def path(self, number: int) -> Path:
        return self.directory / f"broker-{number}.properties"

    def for_broker(self, text: str, number: int) -> str:
        """What the page shows for broker 1, for another one, and for where the test is."""
        text = text.replace("://:", "://127.0.0.1:").replace("broker-1.example.com", "127.0.0.1")
        text = text.replace(":9092", f":{self.plain[number]}").replace(":9093", f":{self.secured[number]}")
        return text.replace("/etc/penstock", str(self.directory / "certs")).replace(
            "broker-1", f"broker-{number}"
        )

    def change(self, block: str, number: int) -> None:
        self._options[number] |= parse_properties(self.for_broker(block, number))
        lines = [f"{name}={value}\n" for name, value in self._options[number].items()]
        self.path(number).write_text("".join(lines))

    def bootstrap(self, ports: Mapping[int, int]) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in ports.values())


@contextmanager
def cluster_of(files: Files) -> Iterator[BrokerCluster]:
    launches = {
        number: BrokerLaunch(
            command=[sys.executable, "-m", "penstock", "broker", "--config", str(files.path(number))],
            port=files.plain[number],
            data_dir=files.directory / f"broker-{number}" / "data",
            log_path=files.directory / f"broker-{number}" / "penstock.log",
            ready_line=READY_LINE,
        )
        for number in BROKERS
    }
    with BrokerCluster("Penstock", launches) as cluster:
        yield cluster


def roll(cluster: BrokerCluster, files: Files, block: str, connection: Connection) -> None:
    """The change into every file, and the brokers restarted one after the other."""
    for number in BROKERS:
        files.change(block, number)
        assert cluster.stop(number) == 0
        cluster.start(number)
        wait_until(lambda: replicas.behind(connection, ()) is None, "all replicas in sync")


def allow(shown: str, files: Files, admin: Mapping[str, str]) -> None:
    config = files.directory / "admin.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in admin.items()))
    shell(files.for_broker(shown, 1).replace("admin.properties", str(config)))


@pytest.mark.timeout(300)
def test_a_cluster_is_moved_as_the_page_says_and_nothing_is_lost(tmp_path: Path) -> None:
    page = PAGE.read_text()
    start, second, among, closed, rules, strict, entering, owned = blocks(page, "properties")
    made, rule, migration = blocks(page, "sh")
    (_, client) = blocks(page, "text")
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        files = Files(tmp_path, zookeeper.address)
        for number in BROKERS:
            files.change(start, number)
        with cluster_of(files) as cluster:
            plain = files.bootstrap(files.plain)
            create_topic(plain, TOPIC, partitions=PARTITIONS, config={"min.insync.replicas": "2"})
            make_certificates_and_users(made, files, plain)
            secured = files.bootstrap(files.secured)
            told = parse_properties(files.for_broker(client, 1))
            with SteadyProducer(plain, TOPIC, partitions=PARTITIONS) as before:
                roll(cluster, files, second, Connection(plain))
                sent = before.finish()
            login = {
                "security.protocol": "sasl_ssl", "sasl.mechanisms": told["sasl.mechanism"],
                "sasl.username": "ana", "sasl.password": SECRETS["ana"],
                "ssl.ca.location": told["ssl.truststore.location"],
            }  # fmt: skip
            told["sasl.jaas.config"] = (
                told["sasl.jaas.config"].replace('"ana"', '"admin"').replace("a-secret", SECRETS["admin"])
            )
            admin = Connection(secured, told)
            with SteadyProducer(secured, TOPIC, partitions=PARTITIONS, login=login) as after:
                for step in (among, closed, rules):
                    roll(cluster, files, step, admin)
                allow(rule, files, told)
                for step in (strict, entering, owned):
                    roll(cluster, files, step, admin)
                give_nodes_to_brokers(migration, files, zookeeper)
                cluster.stop(1)  # what is made is made by brokers, and changed by others, as before
                cluster.start(1)
                wait_until(lambda: replicas.behind(admin, ()) is None, "all replicas in sync")
                sent = sent + after.finish()
            assert sorted(values_in(secured, TOPIC, PARTITIONS, login)) == sorted(sent), "each of them once"
            check_what_is_left(files, cluster, told, tmp_path)


def give_nodes_to_brokers(shown: str, files: Files, zookeeper: ZooKeeperServer) -> None:
    shown = shown.replace("zk-1.example.com:2181", zookeeper.address)
    shell(shown.replace("broker-1.properties", str(files.path(1))))
    stranger = KazooClient(zookeeper.address)
    stranger.start(DEADLINE_S)
    try:
        for path in ("/controller", f"/brokers/topics/{TOPIC}", "/config/users/ana"):
            with pytest.raises(NoAuthError):
                stranger.set(path, b"{}")
        with pytest.raises(NoAuthError):
            stranger.delete("/controller")
        with pytest.raises(NoAuthError):
            stranger.create("/mine", b"")
        with pytest.raises(NoAuthError):
            stranger.get("/config/users/ana")
    finally:
        stranger.stop()
        stranger.close()


def make_certificates_and_users(shown: str, files: Files, bootstrap: str) -> None:
    for user, secret in SECRETS.items():
        (files.directory / f"{user}.secret").write_text(secret + "\n")
    certs, *users = shown.strip().splitlines()
    for number in BROKERS:
        shell(files.for_broker(certs, number))
    for line in users:
        shell(line.replace("-file ", f"-file {files.directory}/"), bootstrap)


def check_what_is_left(
    files: Files, cluster: BrokerCluster, told: Mapping[str, str], directory: Path
) -> None:
    """The super user comes in, nobody without a login does, and no password was logged."""
    config = directory / "admin.properties"
    address = f"127.0.0.1:{files.secured[1]}"
    listed = run_command("penstock", "topics", "list", "-b", address, "--command-config", str(config))
    assert TOPIC in listed.out, listed.err
    for port in (files.plain[1], files.secured[1]):
        assert run_command("penstock", "topics", "list", "-b", f"127.0.0.1:{port}").code == 1
    for number in BROKERS:
        text = cluster.log_text(number)
        assert "Traceback" not in text, text
        assert "-secret" not in text
