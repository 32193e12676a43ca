"""Processes of a box: those that cannot be found again do not stay, and ports are looked at where they are used."""

import os
import socket
from pathlib import Path

import pytest

from penstock.cli.box import processes
from penstock.cli.box.composition import Box, Wish, compose, free_ports, read_box, write_box
from penstock.cli.box.processes import check_port_is_free, locked_box, running_pid, start
from penstock.cli.failures import UserError


def made(directory: Path, wish: Wish) -> Box:
    box = compose(directory, read_box(directory), wish)
    write_box(box)
    return box


def processes_of(folder: Path) -> list[str]:
    """Ids of processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(folder) in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_a_process_without_a_pid_file_is_ended_at_once(tmp_path: Path) -> None:
    box = made(tmp_path, Wish(port=free_ports(1)[0]))
    member = box.member("broker-1")
    box.pid_of(member).mkdir()
    with pytest.raises(UserError, match=r"cannot start broker-1: .*broker-1\.pid: Is a directory"):
        start(box, member)
    assert processes_of(box.data_of(member)) == []


def test_an_interrupt_while_the_pid_is_written_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = made(tmp_path, Wish(port=free_ports(1)[0]))
    member = box.member("broker-1")

    def interrupted(path: Path, text: str) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", interrupted)
        with pytest.raises(KeyboardInterrupt):
            start(box, member)
    assert processes_of(box.data_of(member)) == []
    assert running_pid(box, member) is None
    assert not processes._children


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_is_looked_at_on_the_address_of_the_brokers(tmp_path: Path, host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as taken:
        box = made(tmp_path, Wish(host=host, port=taken.getsockname()[1]))
        with pytest.raises(UserError, match=r"broker-1 cannot use port .*in use"):
            check_port_is_free(box, box.member("broker-1"))
    check_port_is_free(box, box.member("broker-1"))


def test_the_port_of_zookeeper_is_looked_at_where_it_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        box = made(tmp_path, Wish(host="::1", zookeeper_port=taken.getsockname()[1]))
        with pytest.raises(UserError, match="zookeeper cannot use port"):
            check_port_is_free(box, box.member("zookeeper"))


def test_a_box_is_read_under_its_lock_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no cluster in"), locked_box(tmp_path / "nowhere"):
        pass
    assert not (tmp_path / "nowhere").exists()
    made(tmp_path, Wish())
    with (
        locked_box(tmp_path) as box,
        pytest.raises(UserError, match="another penstock command is at work"),
        locked_box(tmp_path),
    ):
        pass
    assert [member.name for member in box.brokers] == ["broker-1"]
