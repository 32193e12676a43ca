"""A process beside a task."""

from __future__ import annotations

import time

import pytest

from penstock.connect.connectors.side_process import Channel, Ended, SideProcess
from penstock.connect.errors import ConnectError

WITHIN_S = 60.0


def main() -> None:
    channel = Channel()
    print("this does not go between the messages")
    while True:
        message = channel.receive()
        if message[0] == "end":
            raise SystemExit(3)
        if message[0] == "echo":
            channel.send("said", *message[1:])


def process() -> SideProcess:
    return SideProcess("tests.unit.connect.connectors.test_side_process")


def test_messages_go_both_ways_and_prints_do_not_disturb_them() -> None:
    beside = process()
    try:
        big = b"x" * 3_000_000
        beside.send("echo", big, {"a": [1]})
        assert beside.wait(lambda: False, WITHIN_S) == ("said", big, {"a": [1]})
        assert beside.receive(0.01) is None
    finally:
        beside.close()


def test_one_that_ends_is_told_and_one_that_is_silent_too() -> None:
    beside = process()
    try:
        beside.send("nothing")
        assert beside.wait(lambda: True, WITHIN_S) is None, "the task is to stop"
        with pytest.raises(ConnectError, match="does not answer"):
            beside.wait(lambda: False, 0.2)
        beside.send("end")
        with pytest.raises(Ended, match="has ended with 3"):
            beside.wait(lambda: False, WITHIN_S)
    finally:
        beside.close()


def test_it_ends_when_its_task_lets_go_also_where_it_waits_for_room() -> None:
    beside = process()
    for _ in range(50):
        beside.send("echo", b"x" * 100_000)
    began_s = time.monotonic()
    beside.close()
    assert beside._process.returncode is not None, time.monotonic() - began_s


if __name__ == "__main__":
    main()
