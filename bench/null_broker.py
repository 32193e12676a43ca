"""A broker that acknowledges every record and keeps none: the limit of the clients themselves.

    python -m bench.null_broker --port N

It answers ApiVersions, Metadata, InitProducerId and Produce, in the last versions without tagged fields, and
reads of a Produce request no more than where each partition's records end. Any topic that is asked for
exists, with as many partitions as its name says ("java-100B-6p": 6) or else one; nothing is checked.
"""

import argparse
import asyncio
import re
import struct
from collections.abc import Callable
from typing import cast

import uvloop

BUFFER_BYTES = 4 * 1024 * 1024
# Fetch is offered because librdkafka takes a broker without it for one of before 0.11; it is never answered.
API_VERSIONS = {0: (3, 8), 1: (4, 11), 3: (1, 8), 18: (0, 4), 22: (0, 1)}
CLUSTER_ID = "null-broker"


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _string_at(data: memoryview, at: int) -> tuple[str | None, int]:
    length = int.from_bytes(data[at : at + 2], "big", signed=True)
    if length < 0:
        return None, at + 2
    return bytes(data[at + 2 : at + 2 + length]).decode(), at + 2 + length


def _int32_at(data: memoryview, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big", signed=True)


def api_versions_answer(version: int) -> bytes:
    if version < 3:
        entries = b"".join(struct.pack(">hhh", key, *span) for key, span in API_VERSIONS.items())
        throttle = b"" if version == 0 else bytes(4)
        return struct.pack(">hi", 0, len(API_VERSIONS)) + entries + throttle
    entries = b"".join(struct.pack(">hhh", key, *span) + b"\x00" for key, span in API_VERSIONS.items())
    return struct.pack(">hB", 0, len(API_VERSIONS) + 1) + entries + bytes(4) + b"\x00"


def metadata_answer(version: int, topics: list[str], *, host: str, port: int) -> bytes:
    parts = [bytes(4) if version >= 3 else b"", struct.pack(">ii", 1, 1), _string(host)]
    parts += [
        struct.pack(">ih", port, -1),
        _string(CLUSTER_ID) if version >= 2 else b"",
        struct.pack(">i", 1),
    ]
    parts.append(struct.pack(">i", len(topics)))
    for topic in topics:
        partition_count = partition_count_of(topic)
        parts += [bytes(2), _string(topic), b"\x00", struct.pack(">i", partition_count)]
        for index in range(partition_count):
            parts.append(struct.pack(">hii", 0, index, 1))
            parts.append(bytes(4) if version >= 7 else b"")  # the leader's epoch
            parts.append(struct.pack(">iiii", 1, 1, 1, 1))  # replicas and in-sync replicas: node 1
            parts.append(bytes(4) if version >= 5 else b"")  # no offline replicas
        parts.append(struct.pack(">i", -(2**31)) if version >= 8 else b"")
    parts.append(struct.pack(">i", -(2**31)) if version >= 8 else b"")
    return b"".join(parts)


def partition_count_of(topic: str) -> int:
    match = re.search(r"-(\d+)p\b", topic)
    return int(match[1]) if match else 1


def metadata_topics(body: memoryview) -> list[str]:
    topics, at = [], 4
    for _ in range(max(0, _int32_at(body, 0))):
        topic, at = _string_at(body, at)
        topics.append(topic or "")
    return topics


class NullBroker:
    def __init__(self, port: int) -> None:
        self.port = port
        self.next_offset = 0
        self.next_producer_id = 0

    def produce_answer(self, version: int, body: memoryview) -> bytes | None:
        _, at = _string_at(body, 0)
        acks = int.from_bytes(body[at : at + 2], "big", signed=True)
        topic_count, at = _int32_at(body, at + 6), at + 10
        parts = [struct.pack(">i", topic_count)]
        for _ in range(topic_count):
            topic, at = _string_at(body, at)
            partition_count, at = _int32_at(body, at), at + 4
            parts += [_string(topic or ""), struct.pack(">i", partition_count)]
            for _ in range(partition_count):
                index, size, at = _int32_at(body, at), _int32_at(body, at + 4), at + 8
                # The number of records stands at byte 57 of a batch.
                count = _int32_at(body, at + 57)
                at += size
                parts.append(struct.pack(">ihqq", index, 0, self.next_offset, -1))
                parts.append(bytes(8) if version >= 5 else b"")  # log start offset
                parts.append(bytes(4) + b"\xff\xff" if version >= 8 else b"")  # no record errors, no message
                self.next_offset += count
        parts.append(bytes(4))
        return None if acks == 0 else b"".join(parts)

    def answer(self, api_key: int, version: int, body: memoryview) -> bytes | None:
        if api_key == 0:
            return self.produce_answer(version, body)
        if api_key == 18:
            return api_versions_answer(version)
        if api_key == 3:
            topics = metadata_topics(body)
            return metadata_answer(version, topics, host="127.0.0.1", port=self.port)
        if api_key == 22:
            self.next_producer_id += 1
            return struct.pack(">ihqh", 0, 0, self.next_producer_id, 0)
        raise ValueError(f"API {api_key} is not offered")


class Connection(asyncio.BufferedProtocol):
    """Receives into one buffer; a frame that is whole in it is answered at once, in order."""

    def __init__(self, answer: Callable[[int, int, memoryview], bytes | None]) -> None:
        self._answer = answer
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        end = self._filled + nbytes
        start = 0
        answers: list[bytes] = []
        while end - start >= 4:
            size = _int32_at(self._view, start)
            if not 8 <= size <= BUFFER_BYTES - 4:
                self._transport.abort()
                return
            if end - start < 4 + size:
                break
            self._answer_frame(self._view[start + 4 : start + 4 + size], answers)
            start += 4 + size
        if answers:
            self._transport.write(b"".join(answers))
        if start:
            self._buffer[: end - start] = self._view[start:end]
        self._filled = end - start

    def _answer_frame(self, frame: memoryview, answers: list[bytes]) -> None:
        api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
        _, at = _string_at(frame, 8)
        body = self._answer(api_key, version, frame[at:])
        if body is not None:
            answers.append(struct.pack(">ii", 4 + len(body), correlation_id) + body)


async def serve(port: int) -> None:
    broker = NullBroker(port)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(broker.answer), "127.0.0.1", port)
    print(f"null broker: listening on 127.0.0.1:{port}", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    uvloop.run(serve(options.port))


if __name__ == "__main__":
    main()
