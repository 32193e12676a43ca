"""Who leads which partition, asked with bare sockets, and a producer that follows a leader wherever it goes."""

import contextlib
import itertools
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kazoo.client import KazooClient

from bench.raw import (
    NO_ERROR,
    Refused,
    metadata_request,
    produce_error,
    produce_request,
    receive_frame,
    record_batch,
)

HOST = "127.0.0.1"
POLL_INTERVAL_S = 0.005
CONNECT_TIMEOUT_S = 1.0
ANSWER_TIMEOUT_S = 20.0
ZOOKEEPER_TIMEOUT_S = 30.0
NOBODY = -1


class Metadata(NamedTuple):
    controller_id: int
    leaders: Mapping[tuple[str, int], int]  # by topic and partition


def parse_metadata(answer: bytes) -> Metadata:
    """The answer to `metadata_request` (Metadata 4)."""
    at = 8  # correlation id, throttle time
    (broker_count,) = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(broker_count):
        at = _skip_string(answer, at + 4) + 4  # id, host, port
        at = _skip_string(answer, at)  # rack
    at = _skip_string(answer, at)  # cluster id
    controller_id, topic_count = struct.unpack_from(">ii", answer, at)
    at += 8
    leaders: dict[tuple[str, int], int] = {}
    for _ in range(topic_count):
        name_at = at + 2
        at = _skip_string(answer, name_at)
        topic = answer[name_at + 2 : at].decode()
        (partition_count,) = struct.unpack_from(">i", answer, at + 1)  # after is_internal
        at += 5
        for _ in range(partition_count):
            index, leader_id, replica_count = struct.unpack_from(">iii", answer, at + 2)
            at += 14 + 4 * replica_count
            (isr_count,) = struct.unpack_from(">i", answer, at)
            at += 4 + 4 * isr_count
            leaders[topic, index] = leader_id
    return Metadata(controller_id, leaders)


def _skip_string(answer: bytes, at: int) -> int:
    return at + 2 + max(0, int.from_bytes(answer[at : at + 2], "big", signed=True))


def ask_metadata(sock: socket.socket, topic: str | None) -> Metadata:
    sock.sendall(metadata_request(topic, may_create=False))
    return parse_metadata(receive_frame(sock))


def connect(port: int) -> socket.socket:
    sock = socket.create_connection((HOST, port), timeout=CONNECT_TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(ANSWER_TIMEOUT_S)
    return sock


class SteadyProducer(threading.Thread):
    """One record after the other with acks=all to the leader of a partition; notes when each was acknowledged.

    Where there is no leader, or it refuses, all brokers are asked again each 5 ms.
    """

    def __init__(self, ports: Mapping[int, int], topic: str, *, partition: int = 0) -> None:
        super().__init__(daemon=True, name="steady producer")
        self._ports = dict(ports)
        self._topic, self._partition = topic, partition
        self._ends = threading.Event()
        self._asked: dict[int, socket.socket] = {}
        self.acknowledged_at: list[float] = []

    def run(self) -> None:
        try:
            while not self._ends.is_set():
                with contextlib.suppress(OSError, Refused):
                    if (leader_id := self._leader_id()) in self._ports:
                        with connect(self._ports[leader_id]) as sock:
                            self._produce(sock)
                time.sleep(POLL_INTERVAL_S)
        finally:
            for sock in self._asked.values():
                sock.close()

    def _produce(self, sock: socket.socket) -> None:
        batch = record_batch(bytes(100), timestamp_ms=time.time_ns() // 1_000_000)
        request = produce_request(self._topic, batch, partition=self._partition)
        while not self._ends.is_set():
            sock.sendall(request)
            if (code := produce_error(receive_frame(sock), self._topic)) != NO_ERROR:
                raise Refused(f"error {code}")
            self.acknowledged_at.append(time.monotonic())
            self._ends.wait(POLL_INTERVAL_S)

    def _leader_id(self) -> int:
        """Of the first broker that knows of a leader with which the last one has not just ended."""
        for broker_id, port in self._ports.items():
            try:
                sock = self._asked.get(broker_id) or self._asked.setdefault(broker_id, connect(port))
                found = ask_metadata(sock, self._topic).leaders.get((self._topic, self._partition), NOBODY)
            except OSError:
                if broker_id in self._asked:
                    self._asked.pop(broker_id).close()
                continue
            if found in self._ports and self._accepts(found):
                return found
        return NOBODY

    def _accepts(self, broker_id: int) -> bool:
        try:
            connect(self._ports[broker_id]).close()
        except OSError:
            return False
        return True

    def longest_gap(self, since: float) -> tuple[float, float]:
        """The longest time between two acknowledgements of which the later is after `since`, and when it ended."""
        times = list(self.acknowledged_at)
        gaps = [(later - earlier, later) for earlier, later in itertools.pairwise(times) if later >= since]
        return max(gaps, default=(0.0, 0.0))

    def wait_for_acknowledgement(self, after: float, *, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not self.acknowledged_at or self.acknowledged_at[-1] <= after:
            if time.monotonic() > deadline:
                raise Refused(f"no record was acknowledged within {timeout_s:g} s")
            time.sleep(POLL_INTERVAL_S)

    def finish(self) -> None:
        self._ends.set()
        self.join(ANSWER_TIMEOUT_S + 1)


@contextlib.contextmanager
def steady_producer(ports: Mapping[int, int], topic: str) -> Iterator[SteadyProducer]:
    producer = SteadyProducer(ports, topic)
    producer.start()
    try:
        yield producer
    finally:
        producer.finish()


class SessionWatch:
    """Notes when ZooKeeper ended the session of a broker, that is, removed its node."""

    def __init__(self, address: str) -> None:
        self._client = KazooClient(address)
        self._client.start(timeout=ZOOKEEPER_TIMEOUT_S)

    def ended(self, broker_id: int) -> "SessionEnd":
        end = SessionEnd()
        if self._client.exists(f"/brokers/ids/{broker_id}", watch=lambda _: end.note()) is None:
            raise Refused(f"broker {broker_id} is not registered")
        return end

    def close(self) -> None:
        self._client.stop()
        self._client.close()


class SessionEnd:
    def __init__(self) -> None:
        self._has_come = threading.Event()
        self._at = 0.0

    def note(self) -> None:
        self._at = time.monotonic()
        self._has_come.set()

    def wait(self, *, timeout_s: float) -> float:
        """time.monotonic() of when it came."""
        if not self._has_come.wait(timeout_s):
            raise Refused(f"the broker was still registered after {timeout_s:g} s")
        return self._at
