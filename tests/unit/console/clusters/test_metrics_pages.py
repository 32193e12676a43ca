"""Counters from the metrics pages of brokers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from penstock.client.cluster_client import BrokerNode
from penstock.console.clusters import metrics_pages

PAGE = b'kafka_server_brokertopicmetrics_bytesin_total 7.0\nkafka_network_requestmetrics_requests_total{request="Fetch"} 2.0\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


def counters_of(serve: Callable[[socket.socket], None]) -> dict[tuple[int, str], float]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                serve(connection)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        found = metrics_pages.counters({1: f"0.0.0.0:{port}"}, {1: BrokerNode(1, "127.0.0.1", 9092)})
        thread.join(30)
        assert not thread.is_alive()
    return found


def test_a_page_is_read_whole() -> None:
    found = counters_of(lambda connection: connection.sendall(HEAD % len(PAGE) + PAGE))
    assert found == {(1, "bytes_in"): 7.0, (1, "requests"): 2.0}


def test_a_page_that_comes_bit_by_bit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_pages, "WHOLE_TIMEOUT_S", 0.2)
    never = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(HEAD % 10_000_000)
        try:
            while not never.wait(0.01):
                connection.sendall(b"#")
        except OSError:
            pass  # it was given up

    assert counters_of(drip) == {}
