"""Connections by the thousand, and the options that bound them."""

import os
import resource
import socket
import time
from collections.abc import Iterator

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import StartBroker
from tests.hostile.raw_client import Closed, RawClient, wait_until

MANY = 10_000
FILES_FOR_OTHERS = 500
CONNECTIONS_PER_ROUND = 200


@pytest.fixture
def many_files() -> Iterator[int]:
    """Raises this process's limit of open files; how many connections it may hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield MANY if hard == resource.RLIM_INFINITY else min(MANY, hard - FILES_FOR_OTHERS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_files(broker: PenstockBroker) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


def test_ten_thousand_idle_connections_cost_little_and_disturb_nobody(
    start_broker: StartBroker, many_files: int
) -> None:
    broker = start_broker()
    idle: list[socket.socket] = []
    with RawClient(broker.port) as other:
        assert other.is_served()
        before, files_before = broker.usage().resident_bytes, open_files(broker)
        try:
            while len(idle) < many_files:
                for _ in range(min(CONNECTIONS_PER_ROUND, many_files - len(idle))):
                    idle.append(socket.create_connection(("127.0.0.1", broker.port), timeout=30))
                assert other.is_served()  # also gives the broker the time to accept the last ones
            wait_until(lambda: open_files(broker) >= files_before + many_files, what="the last connection")
            each = (broker.usage().resident_bytes - before) / many_files
            print(f"{many_files} connections, {each / 1024:.1f} KiB each")
            assert each < 10 * 1024
            for _ in range(200):
                assert other.is_served()
        finally:
            for one in idle:
                one.close()
        wait_until(
            lambda: open_files(broker) <= files_before, timeout_s=30, what="the end of all connections"
        )
        assert other.is_served()
    assert broker.stop() == 0


def test_connections_come_and_go_without_a_trace(start_broker: StartBroker) -> None:
    broker = start_broker()
    with RawClient(broker.port) as other:
        assert other.is_served()
        files_before = open_files(broker)
        resident = []
        for _ in range(5):
            for _ in range(500):
                with RawClient(broker.port) as client:
                    client.send_bytes(b"\x00\x00\x00\x20half")
            wait_until(lambda: open_files(broker) <= files_before, what="the end of all connections")
            resident.append(broker.usage().resident_bytes)
        assert resident[-1] - resident[0] < 8 * 1024 * 1024  # of 2,000 more


def test_one_connection_too_many_from_an_address_is_refused_until_another_ends(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(options={"max.connections.per.ip": "3"})
    clients = [RawClient(broker.port) for _ in range(3)]
    assert all(client.is_served() for client in clients)
    with RawClient(broker.port) as refused:
        assert refused.is_closed_by_the_broker()
    assert broker.log_path.read_text().count("refusing a connection") == 1
    clients.pop().close()
    wait_until(lambda: _is_welcome(broker), what="a free place")
    for client in clients:
        assert client.is_served()
        client.close()


def test_one_connection_too_many_waits_until_another_ends(start_broker: StartBroker) -> None:
    broker = start_broker(options={"max.connections": "3"})
    clients = [RawClient(broker.port) for _ in range(3)]
    assert all(client.is_served() for client in clients)
    with RawClient(broker.port) as waiting:
        assert all(client.is_served() for client in clients)
        clients.pop().close()
        assert waiting.is_served()
    for client in clients:
        client.close()


def _is_welcome(broker: PenstockBroker) -> bool:
    with RawClient(broker.port) as client:
        try:
            return client.is_served()
        except Closed:
            return False


def test_idle_connections_are_closed_and_busy_ones_are_not(start_broker: StartBroker) -> None:
    broker = start_broker(options={"connections.max.idle.ms": "600"})
    with RawClient(broker.port) as idle, RawClient(broker.port) as busy:
        idle.socket.setblocking(False)
        deadline = time.monotonic() + 15
        while True:
            assert busy.is_served()
            assert time.monotonic() < deadline, "the idle connection is still open"
            try:
                assert idle.socket.recv(1) == b""
                break
            except BlockingIOError:
                time.sleep(0.02)
        assert busy.is_served()


def test_a_negative_idle_time_keeps_connections_for_ever(start_broker: StartBroker) -> None:
    broker = start_broker(options={"connections.max.idle.ms": "-1"})
    with RawClient(broker.port, timeout_s=1) as idle:
        assert not idle.is_closed_by_the_broker()
        assert idle.is_served()


def test_a_broker_without_file_descriptors_serves_those_it_has(start_broker: StartBroker) -> None:
    broker = start_broker()
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (64, 64))
    with RawClient(broker.port) as other:
        assert other.is_served()
        waiting = [RawClient(broker.port) for _ in range(100)]
        broker.process.wait_for_line("cannot accept a connection", timeout_s=10)
        assert other.is_served()
        for client in waiting:
            client.close()
        with RawClient(broker.port) as late:
            assert late.is_served()
