"""Commands that are killed, full disks, ports and process ids of somebody else: one line says it, and nothing is lost."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.client.errors import UserError
from penstock.stack import processes, services
from penstock.stack.composition import ServiceWish, Wish, compose
from penstock.stack.ports import free_ports
from penstock.stack.processes import running_pid, start
from penstock.stack.stack import Member, Stack
from penstock.stack.stack_file import existing_stack, locked, write_stack
from penstock.stack.starting import bring_up, check_ports
from penstock.stack.stopping import bring_down
from penstock.stack.watching import Watch
from tests.cli.penstock_with_bell import BELL
from tests.unit.stack.stacks import processes_of

ALONE = dataclasses.replace(BELL, needs=(), default_count=1)
DEADLINE_S = 30.0


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """Of one service that needs no other, with a real process."""
    monkeypatch.setattr(services, "SERVICES", (ALONE,))
    made = compose(tmp_path, None, Wish({"bell": ServiceWish(port=free_ports(1)[0])}), (ALONE,))
    write_stack(made)
    yield made
    pid = running_pid(made, bell(made))
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: running_pid(made, bell(made)) is None)


def bell(stack: Stack) -> Member:
    return stack.member("bell")


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def up(stack: Stack) -> list[str]:
    told: list[str] = []
    bring_up(stack, list(stack.members), tell=told.append, waiting=lambda _: None)
    return told


def down(stack: Stack) -> list[str]:
    told: list[str] = []
    bring_down(stack, list(stack.members), tell=told.append, waiting=lambda _: None)
    return told


# It dies as by kill -9 in the moment after the start of the process, before it notes its id, or just after.
KILLED_UP = """
import os, sys
from pathlib import Path
from penstock.stack import processes, services
from penstock.stack.stack_file import existing_stack
from tests.unit.stack.test_crash_moments import ALONE
services.SERVICES = (ALONE,)
stack = existing_stack(Path(sys.argv[1]))
write_text = Path.write_text
def killed(path, text):
    if sys.argv[2] == "just after":
        write_text(path, text)
    os.kill(os.getpid(), 9)
Path.write_text = killed
processes.start(stack, stack.members[0])
"""


@pytest.mark.parametrize("moment", ["before", "just after"])
def test_what_a_killed_up_had_just_started_ends_too(stack: Stack, moment: str) -> None:
    command = [sys.executable, "-c", KILLED_UP, str(stack.directory), moment]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    wait_until(lambda: processes_of(stack.data_of(bell(stack))) == [])
    assert running_pid(stack, bell(stack)) is None
    assert up(stack)[0].startswith("bell is up")
    assert down(stack) == ["bell has stopped"]


def test_down_twice_is_no_error(stack: Stack) -> None:
    up(stack)
    assert down(stack) == ["bell has stopped"]
    assert down(stack) == ["bell does not run"]


def test_a_process_of_somebody_else_with_our_process_id_lives_on(stack: Stack) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            stack.pid_of(bell(stack)).write_text(f"{other.pid}\n")
            assert down(stack) == ["bell does not run"]
            assert other.poll() is None
            assert not stack.pid_of(bell(stack)).exists()
        finally:
            other.kill()


def test_a_port_that_somebody_took_in_the_last_moment_is_told_with_the_log(stack: Stack) -> None:
    with socket.create_server(("127.0.0.1", bell(stack).port)):
        with pytest.raises(
            UserError, match=r"bell cannot use port \d+ \(address already in use\): stop \S+ \(pid"
        ):
            check_ports(stack, list(stack.members))
        with pytest.raises(
            UserError, match=r"(?s)bell ended: the end of .*bell\.log:.*Address already in use"
        ):
            up(stack)
    assert up(stack)[0].startswith("bell is up")


def test_without_room_for_the_process_id_nothing_stays(stack: Stack) -> None:
    stack.pid_of(bell(stack)).symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"^cannot start bell: .*: No space left on device$"):
        start(stack, bell(stack))
    assert not processes._children
    stack.pid_of(bell(stack)).unlink()
    assert up(stack)[0].startswith("bell is up")


def test_without_room_for_its_description_a_stack_stays_as_it_was(stack: Stack) -> None:
    (stack.directory / "box.new").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"^cannot write .*box\.json: no space left on device$"):
        write_stack(stack._replace(host="::1"))
    assert existing_stack(stack.directory) == stack
    write_stack(stack._replace(host="::1"))
    assert existing_stack(stack.directory).host == "::1"


def test_a_service_that_ends_because_its_log_has_no_room_is_told_at_once(stack: Stack) -> None:
    log = stack.log_of(bell(stack))
    log.symlink_to("/dev/full")
    with pytest.raises(UserError, match="bell ended: the end of"):
        up(stack)
    log.unlink()
    assert up(stack)[0].startswith("bell is up")


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def watch_of(stack: Stack) -> tuple[Watch, Clock, list[str]]:
    told: list[str] = []
    clock = Clock()
    return Watch(stack.directory, tell=told.append, clock=clock), clock, told


def kill(stack: Stack) -> None:
    pid = running_pid(stack, bell(stack))
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: running_pid(stack, bell(stack)) is None)


def test_one_that_another_command_is_stopping_is_not_started_again(stack: Stack) -> None:
    up(stack)
    watch, clock, told = watch_of(stack)
    assert watch.step()
    with locked(stack.directory):
        kill(stack)
        assert watch.step()
        assert told == []  # the other command may be about to remove the process id
    stack.pid_of(bell(stack)).unlink()
    assert not watch.step()
    assert told == ["bell was stopped, and is left alone"]
    clock.now_s += 100
    assert not watch.step()
    assert running_pid(stack, bell(stack)) is None


def test_a_start_that_fails_is_tried_again_after_a_longer_pause(stack: Stack) -> None:
    up(stack)
    watch, clock, told = watch_of(stack)
    watch.step()
    kill(stack)
    watch.step()
    assert told == ["bell died by signal 9, and is started again in 0.1 s"]
    log = stack.log_of(bell(stack))
    log.rename(stack.directory / "older.log")
    log.mkdir()
    clock.now_s += 0.1
    watch.step()
    assert told[-1] == f"cannot start bell: {log}: Is a directory; tried again in 0.2 s"
    log.rmdir()
    clock.now_s += 0.2
    assert watch.step()
    assert told[-1].startswith("bell is started again (pid ")
    assert watch.given_up == []


def test_one_that_was_given_up_is_watched_again_when_somebody_starts_it(stack: Stack) -> None:
    up(stack)
    watch, clock, told = watch_of(stack)
    watch.step()
    for _ in range(2):
        kill(stack)
        watch.step()
        clock.now_s += 1
        watch.step()
    kill(stack)
    assert not watch.step()
    assert told[-1].startswith("bell died 3 times within 60 s and is given up: ")
    assert watch.given_up == ["bell"]
    up(stack)
    assert watch.step()
    assert watch.given_up == []
