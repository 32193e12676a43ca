"""A service that is only a row of the table: started, looked at, watched and stopped as the others are."""

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.boxes import ELSEWHERE, TestBox
from tests.cli.conftest import TIMEOUT_S
from tests.clients.driver import wait_until

PROGRAM = (sys.executable, str(Path(__file__).with_name("penstock_with_bell.py")))
FREE_PORTS = ("--port", "0", "--zookeeper-port", "0", "--bell-port", "0")


@pytest.fixture
def box(tmp_path: Path) -> Iterator[TestBox]:
    made = TestBox(tmp_path / "box", program=PROGRAM)
    yield made
    made.close()


def in_order(text: str, *parts: str) -> bool:
    places = [text.index(part) for part in parts]
    return places == sorted(places)


def test_a_row_is_all_that_a_new_service_needs(box: TestBox) -> None:
    started = box.up("--with", "bell", *FREE_PORTS)
    assert started.code == 0, started.err
    assert in_order(started.err, "zookeeper is up", "broker-1 is up", "bell is up")
    bell = next(service for service in box.status()["services"] if service["name"] == "bell")
    assert f"the bell at 127.0.0.1:{bell['port']}" in started.out
    assert (bell["service"], bell["healthy"], bell["problem"]) == ("bell", True, None)
    assert bell["pid"] == box.pids()["bell"]
    assert 0 <= bell["uptime_s"] < TIMEOUT_S
    assert bell["memory_bytes"] > 1_000_000
    shown = box.run("status")
    assert shown.code == 0
    assert [
        line.split()[:2] for line in shown.out.splitlines() if line.startswith(("bell", "zookeeper"))
    ] == [
        ["zookeeper", "healthy"],
        ["bell", "healthy"],
    ]

    urllib.request.urlopen(f"http://127.0.0.1:{bell['port']}/ding", timeout=TIMEOUT_S).close()
    assert box.run("logs", "bell").out == (
        f"the bell hangs at 127.0.0.1:{bell['port']}, and rings for {box.bootstrap}\nthe bell rings: /ding\n"
    )
    assert box.run("logs", "bell", "-n", "1").out == "the bell rings: /ding\n"
    several = box.run("logs", "-n", "1").out.splitlines()
    assert "bell      | the bell rings: /ding" in several
    assert any(line.startswith("broker-1  | ") for line in several)

    (box.directory / "bell" / "sick").touch()
    sick = box.run("status")
    assert sick.code == 1
    assert "answers GET /health with 503" in sick.out
    assert not box.status()["healthy"]
    (box.directory / "bell" / "sick").unlink()
    box.kill("bell")
    wait_until(lambda: "not running" in box.run("status").out, "the bell to be missed")
    again = box.up()
    assert again.code == 0, again.err
    assert in_order(again.err, "broker-1 runs already", "bell is up")

    stopped = box.run("down")
    assert stopped.code == 0, stopped.err
    assert in_order(stopped.err, "bell has stopped", "broker-1 has stopped", "zookeeper has stopped")
    assert (box.directory / "bell.log").read_text().endswith("the bell is silent\n")
    alone = box.up("--only", "bell")
    assert alone.err.startswith("penstock: bell needs broker, and no broker is healthy: penstock up --data")


class Foreground:
    """`penstock up --foreground`, and what it has said so far."""

    def __init__(self, box: TestBox, *words: str) -> None:
        up = [*box.program, "up", "--foreground", *words, "--data", str(box.directory)]
        environment = {**os.environ, **ELSEWHERE}
        self.process = subprocess.Popen(
            up, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.said = ""
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line

    def wait_for(self, sentence: str, times: int = 1) -> None:
        def is_said() -> bool:
            assert self.process.poll() is None, self.said
            return self.said.count(sentence) >= times

        wait_until(is_said, f"{sentence!r} {times} times")

    def end_by(self, number: int) -> int:
        self.process.send_signal(number)
        code = self.process.wait(TIMEOUT_S)
        self._listener.join()
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._listener.join()
        if self.process.stderr is not None:
            self.process.stderr.close()


def test_in_the_foreground_what_dies_is_started_again_and_all_ends_together(box: TestBox) -> None:
    foreground = Foreground(box, "--with", "bell", *FREE_PORTS)
    try:
        foreground.wait_for("Watching. Ctrl-C stops everything.")
        before = box.pids()
        box.kill("bell")
        foreground.wait_for("bell died by signal 9, and is started again in 0.1 s")
        foreground.wait_for("bell is healthy")
        assert box.pids()["bell"] != before["bell"]
        (box.directory / "bell" / "sick").touch()
        foreground.wait_for("bell is not healthy: answers GET /health with 503")
        (box.directory / "bell" / "sick").unlink()
        foreground.wait_for("bell is healthy", times=2)
        box.kill("broker-1")
        foreground.wait_for("broker-1 died by signal 9, and is started again in 1 s")
        foreground.wait_for("broker-1 is healthy")

        second = box.up("--foreground")
        assert second.err == f"penstock: another penstock up --foreground watches {box.directory}\n"
        assert box.run("down", "--only", "bell").code == 0
        foreground.wait_for("bell was stopped, and is left alone")
        assert box.up("--only", "bell").code == 0
        (box.directory / "bell" / "broken").touch()
        foreground.wait_for("bell is healthy", times=3)
        box.kill("bell")
        foreground.wait_for("bell died 3 times within 60 s and is given up")
        assert "bell died with exit code 1, and is started again in 0.2 s" in foreground.said
        (box.directory / "bell" / "broken").unlink()
        assert box.up("--only", "bell").code == 0
        assert foreground.end_by(signal.SIGINT) == 0
        assert in_order(foreground.said, "bell has stopped", "broker-1 has stopped", "zookeeper has stopped")
        assert "Traceback" not in foreground.said
        assert box.pids() == {}
    finally:
        foreground.close()


def test_a_foreground_that_must_end_while_it_starts_leaves_nothing(box: TestBox) -> None:
    foreground = Foreground(box, "--with", "bell", *FREE_PORTS)
    try:
        wait_until(lambda: "zookeeper" in box.pids(), "the start of zookeeper")
        assert foreground.end_by(signal.SIGTERM) == 130, foreground.said
        assert "zookeeper has stopped" in foreground.said
        assert box.pids() == {}
    finally:
        foreground.close()


def test_a_log_is_followed_while_it_is_written(box: TestBox) -> None:
    assert box.up("--with", "bell", *FREE_PORTS).code == 0
    (port,) = (service["port"] for service in box.status()["services"] if service["name"] == "bell")
    follow = [*box.program, "logs", "-f", "-n", "1", "bell", "zookeeper", "--data", str(box.directory)]
    with subprocess.Popen(follow, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("bell      | the bell hangs at")
        urllib.request.urlopen(f"http://127.0.0.1:{port}/ding", timeout=TIMEOUT_S).close()
        rung = next(line for line in process.stdout if line.startswith("bell"))
        assert rung == "bell      | the bell rings: /ding\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
