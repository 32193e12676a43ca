"""Whether the leader's process is there."""

from __future__ import annotations

import socket
import threading

from penstock.client.group_identity import Identity
from penstock.connect.running.leader_watch import LeaderWatch

DEADLINE_S = 20


def listening() -> tuple[socket.socket, Identity]:
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(DEADLINE_S)
    return server, Identity("http", "127.0.0.1", server.getsockname()[1])


def test_a_port_at_which_nobody_listens_any_more_is_a_death() -> None:
    server, leader = listening()
    died: list[Identity] = []
    told = threading.Event()

    def on_death(who: Identity) -> None:
        died.append(who)
        told.set()

    watch = LeaderWatch(lambda: leader, on_death)
    watch.start()
    accepted, _ = server.accept()
    assert not died
    server.close()
    accepted.close()
    assert told.wait(DEADLINE_S)
    assert died == [leader]
    watch.stop()


def test_a_leader_that_ends_idle_connections_is_alive() -> None:
    server, leader = listening()
    died: list[Identity] = []
    watch = LeaderWatch(lambda: leader, died.append)
    watch.start()
    for _ in range(3):
        accepted, _ = server.accept()
        accepted.close()
    assert not died
    watch.stop()
    server.close()


def test_a_leader_that_was_replaced_meanwhile_is_left_alone() -> None:
    server, leader = listening()
    server.close()
    asked = threading.Event()
    answers = [leader, leader, None]

    def current() -> Identity | None:
        if len(answers) == 1:
            asked.set()
            return answers[0]
        return answers.pop(0)

    died: list[Identity] = []
    watch = LeaderWatch(current, died.append)
    watch.start()
    assert asked.wait(DEADLINE_S)
    watch.stop()
    assert not died
