"""The files and the command line of a ZooKeeper server; the server itself runs in `tests/zookeeper`."""

import socket
from pathlib import Path

import pytest

from penstock.stores.zookeeper_server import (
    Member,
    ServerMissing,
    find_jars,
    find_java,
    server_status,
    write_configuration,
)


def test_a_server_of_several_knows_the_others_and_itself(tmp_path: Path) -> None:
    members = [Member("127.0.0.1", 2181 + n, 2888 + n, 3888 + n) for n in range(3)]
    text = write_configuration(tmp_path, port=2182, server_id=2, members=members).read_text()
    assert "clientPort=2182\n" in text
    assert "server.1=127.0.0.1:2888:3888\n" in text
    assert "server.3=127.0.0.1:2890:3890\n" in text
    assert (tmp_path / "data" / "myid").read_text() == "2\n"


def test_a_single_server_names_no_members(tmp_path: Path) -> None:
    assert "server." not in write_configuration(tmp_path, port=2181).read_text()


def test_without_the_jars_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(ServerMissing, match=r"pip install 'penstock\[spark\]'"):
        find_jars()


def test_without_java_it_is_said_which_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ServerMissing, match="Java runtime, 17 or later"):
        find_java()


def test_what_does_not_serve_has_no_status() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert server_status("127.0.0.1", port, timeout_s=0.05) is None
    assert server_status("127.0.0.1", port, timeout_s=0.05) is None
