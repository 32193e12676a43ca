"""A broker of one topic with one partition that answers whatever a test wants it to."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from penstock.model.api_keys import ApiKey
from penstock.wire.codec import encode
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from penstock.wire.messages.fetch import FetchRequest
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest
from penstock.wire.schema import Message

Answer = Callable[[int], bytes | Message]
"""From the version that was asked in to the bytes behind the header, or to a message."""
_KNOWN: tuple[type[Message], ...] = (
    ApiVersionsRequest, DescribeConfigsRequest, FetchRequest, ListOffsetsRequest, MetadataRequest,
    SaslAuthenticateRequest, SaslHandshakeRequest,
)  # fmt: skip
_BY_KEY = {request.API_KEY: request for request in _KNOWN}
END_OFFSET = 10


class HostileBroker:
    def __init__(self, server: socket.socket, answers: Mapping[ApiKey, Answer], size: int | None) -> None:
        self._server = server
        self._size = size
        self.port: int = server.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.asked: list[int] = []
        self._open: list[socket.socket] = []
        self._answers: dict[ApiKey, Answer] = {
            ApiKey.API_VERSIONS: lambda _: api_versions(),
            ApiKey.METADATA: lambda _: metadata("127.0.0.1", self.port),
            ApiKey.LIST_OFFSETS: lambda _: offsets(),
            ApiKey.DESCRIBE_CONFIGS: lambda _: cleanup_policy("delete"),
        }
        self._answers.update(answers)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as requests:
                while head := requests.read(4):
                    frame = requests.read(int.from_bytes(head))
                    api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
                    self.asked.append(api_key)
                    body = self._answers[ApiKey(api_key)](version)
                    if not isinstance(body, bytes):
                        body = encode(body, version)
                    is_flexible = version >= _BY_KEY[api_key].FLEXIBLE_FROM and api_key != ApiKey.API_VERSIONS
                    answer = struct.pack(">i", correlation_id) + b"\0" * is_flexible + body
                    size = len(answer) if api_key != ApiKey.FETCH or self._size is None else self._size
                    connection.sendall(struct.pack(">i", size) + answer)
        except OSError:
            pass

    def stop(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join()


@contextmanager
def hostile_broker(
    answers: Mapping[ApiKey, Answer] | None = None, *, size: int | None = None
) -> Iterator[HostileBroker]:
    """`size` is what the answers to Fetch say of themselves."""
    broker = HostileBroker(socket.create_server(("127.0.0.1", 0)), answers or {}, size)
    try:
        yield broker
    finally:
        broker.stop()


def api_versions(error_code: int = 0, highest: int | None = None) -> ApiVersionsResponse:
    ranges = [
        ApiVersion(api_key=request.API_KEY, min_version=0, max_version=highest or request.VERSIONS[1])
        for request in _KNOWN
    ]
    return ApiVersionsResponse(error_code=error_code, api_keys=ranges)


def metadata(host: str, port: int) -> MetadataResponse:
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)],
        topics=[MetadataResponseTopic(name="orders", topic_id=bytes(range(16)), partitions=[partition])],
    )


def offsets() -> ListOffsetsResponse:
    """The same for the first and the last offset: tests say where to start."""
    found = ListOffsetsPartitionResponse(partition_index=0, offset=END_OFFSET)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[found])])


def cleanup_policy(value: str) -> DescribeConfigsResponse:
    config = DescribeConfigsResourceResult(name="cleanup.policy", value=value)
    return DescribeConfigsResponse(results=[DescribeConfigsResult(resource_name="orders", configs=[config])])
