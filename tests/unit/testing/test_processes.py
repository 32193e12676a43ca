import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from penstock.testing.processes import (
    ProcessFailed,
    RunningProcess,
    free_ports,
    port_is_open,
    process_usage,
    start_process,
)

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""
LISTENING = """
import socket, sys, time
with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
    time.sleep(60)
"""


def start_python(tmp_path: Path, code: str, *args: str) -> RunningProcess:
    return start_process([sys.executable, "-c", code, *args], name="a test", log_path=tmp_path / "log")


def test_a_ready_line_is_waited_for(tmp_path: Path) -> None:
    with start_python(tmp_path, "import time; print('serving on 7', flush=True); time.sleep(60)") as process:
        assert process.wait_for_line(r"^serving on (\d+)", timeout_s=10)[1] == "7"


def test_a_line_of_an_earlier_process_does_not_count(tmp_path: Path) -> None:
    with start_python(tmp_path, "print('ready')") as first:
        assert first.wait(timeout_s=10) == 0
    with start_python(tmp_path, "print('no')") as second, pytest.raises(ProcessFailed, match="exit code 0"):
        second.wait_for_line("ready", timeout_s=10)


def test_a_process_that_ends_early_is_reported_with_its_last_words(tmp_path: Path) -> None:
    code = "raise SystemExit('the disk is full')"
    with start_python(tmp_path, code) as process, pytest.raises(ProcessFailed, match="the disk is full"):
        process.wait_for_line("ready", timeout_s=10)


def test_a_line_that_never_comes_ends_at_the_deadline(tmp_path: Path) -> None:
    with (
        start_python(tmp_path, "import time; time.sleep(60)") as process,
        pytest.raises(ProcessFailed, match="no line matched"),
    ):
        process.wait_for_line("ready", timeout_s=0.05)


def test_an_open_port_is_waited_for(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with start_python(tmp_path, LISTENING, str(port)) as process:
        process.wait_for_port(port, timeout_s=10)
        assert port_is_open("127.0.0.1", port)


def test_a_process_that_ignores_sigterm_is_killed_after_the_deadline(tmp_path: Path) -> None:
    with start_python(tmp_path, STUBBORN) as process:
        process.wait_for_line("ready", timeout_s=10)
        assert process.stop(timeout_s=0.05) == -signal.SIGKILL


def test_stopping_twice_gives_the_same_answer(tmp_path: Path) -> None:
    with start_python(tmp_path, "import time; print('ready', flush=True); time.sleep(60)") as process:
        process.wait_for_line("ready", timeout_s=10)
        assert process.stop() == -signal.SIGTERM
        assert process.stop() == -signal.SIGTERM
        assert not process.is_running


def test_the_end_of_a_with_block_ends_the_process(tmp_path: Path) -> None:
    with start_python(tmp_path, "import time; time.sleep(60)") as process:
        pid = process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_free_ports_are_different_and_can_be_bound() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    with socket.create_server(("127.0.0.1", ports[0])):
        assert port_is_open("127.0.0.1", ports[0])


def test_cpu_time_and_memory_of_a_process_are_read() -> None:
    before = process_usage(os.getpid())
    ballast = bytearray(os.urandom(1024)) * (32 * 1024)
    deadline = time.process_time() + 0.05
    while time.process_time() < deadline:
        pass
    after = process_usage(os.getpid())
    assert after.cpu_seconds > before.cpu_seconds
    assert after.peak_resident_bytes >= len(ballast)
