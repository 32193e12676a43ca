"""Processes of a stack: those that cannot be found again do not stay, and ports are looked at where they are used."""

import socket
from pathlib import Path

import pytest

from penstock.client.errors import UserError
from penstock.stack import processes
from penstock.stack.ports import check_ports_are_free, free_ports
from penstock.stack.processes import running_pid, start
from penstock.stack.stack_file import locked_stack
from tests.unit.stack.stacks import asked, made, processes_of


def test_a_process_without_a_pid_file_is_ended_at_once(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(port=free_ports(1)[0]))
    member = stack.member("broker-1")
    stack.pid_of(member).mkdir()
    with pytest.raises(UserError, match=r"cannot start broker-1: .*broker-1\.pid: Is a directory"):
        start(stack, member)
    assert processes_of(stack.data_of(member)) == []


def test_an_interrupt_while_the_pid_is_written_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = made(tmp_path, asked(port=free_ports(1)[0]))
    member = stack.member("broker-1")

    def interrupted(path: Path, text: str) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", interrupted)
        with pytest.raises(KeyboardInterrupt):
            start(stack, member)
    assert processes_of(stack.data_of(member)) == []
    assert running_pid(stack, member) is None
    assert not processes._children


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_is_looked_at_on_the_address_of_the_brokers(tmp_path: Path, host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as taken:
        stack = made(tmp_path, asked(host=host, port=taken.getsockname()[1]))
        with pytest.raises(UserError, match=r"broker-1 cannot use port .*in use"):
            check_ports_are_free(stack, stack.member("broker-1"))
    check_ports_are_free(stack, stack.member("broker-1"))


def test_the_port_of_zookeeper_is_looked_at_where_it_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        stack = made(tmp_path, asked(host="::1", zookeeper_port=taken.getsockname()[1]))
        with pytest.raises(UserError, match="zookeeper cannot use port"):
            check_ports_are_free(stack, stack.member("zookeeper"))


def test_a_box_is_read_under_its_lock_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no cluster in"), locked_stack(tmp_path / "nowhere"):
        pass
    assert not (tmp_path / "nowhere").exists()
    made(tmp_path, asked())
    with (
        locked_stack(tmp_path) as stack,
        pytest.raises(UserError, match="another penstock command is at work"),
        locked_stack(tmp_path, patience_s=0.1),
    ):
        pass
    assert [member.name for member in stack.members_of("broker")] == ["broker-1"]
