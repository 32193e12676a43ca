"""Users made before anybody can log in: straight in the metadata."""

import base64
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from penstock.security.scram import salted
from penstock.stack.certificates import Authority
from penstock.testing.zookeeper import ZooKeeperServer
from tests.cli.conftest import Finished, run_command
from tests.clients.driver import WAIT_S
from tests.security.secured_broker import SecuredBroker

CLOSED = {"listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-512", "super.users": "User:admin"}


def set_user(*words: str, name: str = "admin", password: str = "first pass") -> Finished:
    return run_command("penstock", "users", "set", name, "--password-file", "-", *words, stdin=password)


def list_topics(broker: SecuredBroker, password: str = "first pass", *, user: str = "admin") -> object:
    admin = AdminClient({
        "bootstrap.servers": broker.bootstrap("SECURE"), "security.protocol": "SASL_SSL", "log_level": 0,
        "ssl.ca.location": str(broker.authority.path), "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": user, "sasl.password": password,
    })  # fmt: skip
    return admin.list_topics(timeout=WAIT_S)


@pytest.mark.parametrize("way", ["data", "config"])
def test_the_first_user_of_a_broker_that_does_not_run(tmp_path: Path, authority: Authority, way: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={data}\n")
    done = set_user(f"--{way}", str(data if way == "data" else properties))
    assert (done.code, done.err) == (0, "✓ user admin logs in by SCRAM-SHA-512\n")
    assert stat.S_IMODE((data / "penstock-metadata.db").stat().st_mode) == 0o600
    with SecuredBroker(tmp_path, authority, **CLOSED) as broker:
        list_topics(broker)
        running = set_user("--data", str(data))
        assert running.code == 1
        assert "is in use: is another broker running on this data directory?" in running.err
        assert running.err.count("\n") == 1
    assert set_user("--data", str(data), password="another").code == 0
    with SecuredBroker(tmp_path, authority, **CLOSED) as broker:
        list_topics(broker, "another")


def test_the_first_user_of_a_cluster_in_zookeeper(tmp_path: Path, authority: Authority) -> None:
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        connect = f"{zookeeper.address}/kafka"
        assert set_user("--zookeeper", connect).code == 0
        options = {**CLOSED, "zookeeper.connect": connect, "broker.id": "1"}
        with SecuredBroker(tmp_path, authority, **options) as broker:
            list_topics(broker)
            assert set_user("--zookeeper", connect, password="changed").code == 0  # live
            list_topics(broker, "changed")


def test_where_zookeeper_has_a_login_the_configuration_says_it(tmp_path: Path, authority: Authority) -> None:
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        options = {
            **CLOSED, "zookeeper.connect": zookeeper.address, "broker.id": "1",
            "penstock.zookeeper.auth": "brokers:z-secret", "zookeeper.set.acl": "true",
        }  # fmt: skip
        properties = tmp_path / "zk.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
        assert set_user("--config", str(properties)).code == 0
        with SecuredBroker(tmp_path, authority, **options) as broker:
            list_topics(broker)
        refused = set_user("--zookeeper", zookeeper.address)
        assert refused.code == 1
        assert "belongs to another user" in refused.err


def format_directory(tmp_path: Path, *scram: str) -> Finished:
    """With Kafka's own tool."""
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={tmp_path / 'data'}\n")
    words = ("--config", str(properties), "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--standalone")
    return run_command(
        "kafka-storage", "format", *words, *(word for text in scram for word in ("--add-scram", text))
    )


def test_users_are_made_when_a_directory_is_formatted(tmp_path: Path, authority: Authority) -> None:
    salt = base64.b64encode(b"a salt of some bytes").decode()
    made = salted("SCRAM-SHA-512", "second pass", salt=b"a salt of some bytes", iterations=4096)
    done = format_directory(
        tmp_path,
        "SCRAM-SHA-512=[name=admin,password=first pass,iterations=8192]",
        "SCRAM-SHA-256=[name=ana,password=x]",
        f'SCRAM-SHA-512=[name=bob,salt="{salt}",saltedpassword="{base64.b64encode(made).decode()}",iterations=4096]',
    )
    assert (done.code, done.err) == (0, "")
    with SecuredBroker(tmp_path, authority, **CLOSED) as broker:
        list_topics(broker)
        list_topics(broker, "second pass", user="bob")


@pytest.mark.parametrize(
    "text",
    [
        "SCRAM-SHA-512",
        "SCRAM-SHA-1=[name=ana,password=pazz]",
        "SCRAM-SHA-512=[name=ana]",
        "SCRAM-SHA-512=[password=pazz]",
        "SCRAM-SHA-512=[name=ana,password=pazz,iterations=1]",
        "SCRAM-SHA-512=[name=ana,password=pazz,colour=red]",
        "SCRAM-SHA-512=[name=ana,password=pazz,salt=YQ==]",
        "SCRAM-SHA-512=[name=ana,saltedpassword=pazz,salt=?]",
    ],
)
def test_a_user_that_cannot_be_made_leaves_the_directory_alone(tmp_path: Path, text: str) -> None:
    done = format_directory(tmp_path, text)
    assert done.code == 1
    assert "--add-scram" in done.err
    assert done.err.count("\n") == 1
    assert "pazz" not in done.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--zookeeper", "127.0.0.1:1"), "127.0.0.1:1"),
        (("--zookeeper", "a:b:c"), "not an address of ZooKeeper"),
        (("--data", "/nowhere/at/all"), "there is no /nowhere/at/all"),
        (("--config", "/nowhere.properties"), "cannot read /nowhere.properties: no such file or directory"),
        (("--data", ".", "--zookeeper", "x:1"), "name two ways to the same thing"),
        (("--data", ".", "-b", "x:1"), "name two ways to the same thing"),
    ],
)
def test_what_cannot_be_is_one_line(words: tuple[str, ...], complaint: str) -> None:
    done = set_user(*words)
    assert done.code == 1
    assert complaint in done.err
    assert done.err.startswith("penstock: ")
    assert done.err.count("\n") == 1
    assert "first pass" not in done.err


def test_a_password_that_is_asked_for_is_not_on_the_command_line(tmp_path: Path) -> None:
    """It comes from a file or from the terminal; there is no option for it."""
    told = subprocess.run(
        [sys.executable, "-m", "penstock", "users", "set", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    ).stdout
    assert "--password-file" in told
    assert "--password " not in told
