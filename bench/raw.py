"""The few bytes of Kafka's protocol that a client needs to have a topic created, to produce to it and to read it.

By hand, so that a measurement neither waits for a client library to start nor counts its work. Old, simple
versions that every broker since 2.1 answers: Metadata 4, Produce 3 and Fetch 4.
"""

import socket
import struct
import time

import crc32c

METADATA_KEY, METADATA_VERSION = 3, 4
PRODUCE_KEY, PRODUCE_VERSION = 0, 3
FETCH_KEY, FETCH_VERSION = 1, 4
FETCH_BYTES = 1024 * 1024  # the default of max.partition.fetch.bytes
NO_ERROR = 0


class Refused(Exception):
    """The broker answered with an error code."""


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _frame(api_key: int, api_version: int, body: bytes) -> bytes:
    header = struct.pack(">hhi", api_key, api_version, 7) + _string("bench")
    return struct.pack(">i", len(header) + len(body)) + header + body


def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def record_batch(value: bytes, *, timestamp_ms: int) -> bytes:
    """One record without key in one batch, uncompressed, of no idempotent producer."""
    record = b"\x00" + _varint(0) + _varint(0) + _varint(-1) + _varint(len(value)) + value + _varint(0)
    records = _varint(len(record)) + record
    attributes, last_offset_delta, no_producer, record_count = 0, 0, -1, 1
    checked = struct.pack(
        ">hiqqqhii",
        *(attributes, last_offset_delta, timestamp_ms, timestamp_ms),
        *(no_producer, no_producer, no_producer, record_count),
    )
    checked += records
    leader_epoch, magic = -1, 2
    after_length = struct.pack(">ibI", leader_epoch, magic, crc32c.crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(after_length)) + after_length


def metadata_request(topic: str | None, *, may_create: bool = True) -> bytes:
    """Asks for one topic, or for all, and allows the broker to create it."""
    topics = struct.pack(">i", -1) if topic is None else struct.pack(">i", 1) + _string(topic)
    return _frame(METADATA_KEY, METADATA_VERSION, topics + (b"\x01" if may_create else b"\x00"))


def produce_request(
    topic: str, batch: bytes, *, partition: int = 0, timeout_ms: int = 30_000, acks: int = -1
) -> bytes:
    """One batch for one partition; acks=all is -1."""
    no_transaction = -1
    body = struct.pack(">hhi", no_transaction, acks, timeout_ms)
    body += struct.pack(">i", 1) + _string(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    return _frame(PRODUCE_KEY, PRODUCE_VERSION, body)


def receive_frame(sock: socket.socket) -> bytes:
    """The next answer without its size; ConnectionError at the end of the stream."""
    return _receive(sock, int.from_bytes(_receive(sock, 4), "big"))


def _receive(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        chunk = sock.recv(size - len(parts))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        parts += chunk
    return bytes(parts)


def produce_error(answer: bytes, topic: str) -> int:
    """The error code in the answer to `produce_request`: it follows correlation id, counts, topic, index."""
    at = 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    return int.from_bytes(answer[at : at + 2], "big", signed=True)


def fetch_request(topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 500) -> bytes:
    replica_id, min_bytes, read_uncommitted = -1, 1, 0
    body = struct.pack(">iiiib", replica_id, max_wait_ms, min_bytes, 50 * FETCH_BYTES, read_uncommitted)
    body += struct.pack(">i", 1) + _string(topic) + struct.pack(">iiqi", 1, partition, offset, FETCH_BYTES)
    return _frame(FETCH_KEY, FETCH_VERSION, body)


def fetched_records(answer: bytes, topic: str) -> tuple[int, memoryview]:
    """The error code and the batches in the answer to `fetch_request`."""
    # Before it: correlation id, throttle time, counts, topic, partition index.
    at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    error, _, _, aborted_count = struct.unpack_from(">hqqi", answer, at)
    at += 22 + 16 * max(0, aborted_count)
    return error, memoryview(answer)[at + 4 :]


def wait_for_first_ack(host: str, port: int, topic: str, *, timeout_s: float) -> float:
    """Connects, as soon as that is possible, has the topic created and one record acknowledged.

    Returns time.monotonic() of the acknowledgement. Every step is tried again each millisecond.
    """
    deadline = time.monotonic() + timeout_s
    metadata = metadata_request(topic)
    produce = produce_request(topic, record_batch(b"first", timestamp_ms=time.time_ns() // 1_000_000))
    while True:
        try:
            with socket.create_connection((host, port), timeout=timeout_s) as sock:
                while time.monotonic() < deadline:
                    sock.sendall(metadata)
                    receive_frame(sock)
                    sock.sendall(produce)
                    if produce_error(receive_frame(sock), topic) == NO_ERROR:
                        return time.monotonic()
                    time.sleep(0.001)
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise Refused(f"no record was acknowledged within {timeout_s:g} s")
        time.sleep(0.001)
