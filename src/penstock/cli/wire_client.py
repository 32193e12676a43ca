"""One request, one answer, over a plain socket: for the few questions that librdkafka cannot ask.

The version of each request is the highest that both sides have. No pipelining, no retries, no security yet: a caller
with another way to its answer should take it when the cluster does not speak PLAINTEXT.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import TypeVar

import penstock
from penstock.cli.failures import Refused, Unreachable
from penstock.cli.reach import PROBE_TIMEOUT_S, parse_addresses
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Address
from penstock.wire.codec import decode, encode
from penstock.wire.errors import Malformed
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)

TIMEOUT_S = 10.0
MIN_PATIENCE_S = 1.0
MAX_ANSWER_BYTES = 256 << 20
CLIENT_ID = b"penstock-cli"
UNSUPPORTED_VERSION = 35


class UnsupportedByBroker(Refused):
    """The broker does not have this API in any version that we speak."""

    def __init__(self, api: str) -> None:
        super().__init__(
            f"the broker does not offer {api}",
            code=UNSUPPORTED_VERSION,
            exception_name="org.apache.kafka.common.errors.UnsupportedVersionException",
        )


class WireClient:
    """A connection to one broker. Use as a context."""

    def __init__(self, address: Address, *, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._correlation_id = 0
        self._ranges: dict[int, tuple[int, int]] | None = None
        try:
            self._socket = socket.create_connection(address, timeout=timeout_s)
        except OSError as error:
            raise Unreachable(f"cannot reach the broker at {address}: {error.strerror or error}") from None

    @classmethod
    def of_bootstrap(cls, bootstrap: str) -> WireClient:
        """To the first address that answers: one that only takes the connection may belong to a broker that hangs."""
        failure: Unreachable | None = None
        addresses = parse_addresses(bootstrap)
        patience_s = (
            max(MIN_PATIENCE_S, PROBE_TIMEOUT_S / len(addresses)) if len(addresses) > 1 else TIMEOUT_S
        )
        for address in addresses:
            try:
                client = cls(address, timeout_s=patience_s)
            except Unreachable as error:
                failure = error
                continue
            try:
                client._version_ranges()
            except Unreachable as error:
                client.close()
                failure = error
            else:
                client._timeout_s = TIMEOUT_S
                return client
        assert failure is not None
        raise failure

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(
        self,
        request: Message,
        answer: type[R],
        *,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> R:
        """`max_version` keeps away from later versions of the API, such as those that name topics by id. `timeout_s` is
        for an answer that may take longer than others."""
        self._socket.settimeout(self._timeout_s if timeout_s is None else timeout_s)
        low, high = self._version_ranges().get(request.API_KEY, (0, -1))
        version = min(high, request.VERSIONS[1] if max_version is None else max_version)
        if version < max(low, request.VERSIONS[0]):
            raise UnsupportedByBroker(ApiKey(request.API_KEY).name)
        return self._exchange(request, answer, version)

    def api_versions(self) -> ApiVersionsResponse:
        """All that the broker says about itself; an older broker is asked again in a version it knows."""
        highest = ApiVersionsRequest.VERSIONS[1]
        request = ApiVersionsRequest(
            client_software_name="penstock", client_software_version=penstock.__version__
        )
        answered = self._exchange(request, ApiVersionsResponse, highest)
        if answered.error_code == UNSUPPORTED_VERSION:
            known = {entry.api_key: entry.max_version for entry in answered.api_keys}
            answered = self._exchange(request, ApiVersionsResponse, known.get(request.API_KEY, 0))
        if answered.error_code:
            raise Refused(
                f"the broker refused ApiVersions with error {answered.error_code}", code=answered.error_code
            )
        return answered

    def _version_ranges(self) -> dict[int, tuple[int, int]]:
        if self._ranges is None:
            entries = self.api_versions().api_keys
            self._ranges = {entry.api_key: (entry.min_version, entry.max_version) for entry in entries}
        return self._ranges

    def _exchange(self, request: Message, answer: type[R], version: int) -> R:
        self._correlation_id += 1
        is_flexible = version >= request.FLEXIBLE_FROM
        header = (
            struct.pack(">hhih", request.API_KEY, version, self._correlation_id, len(CLIENT_ID)) + CLIENT_ID
        )
        frame = header + (b"\0" if is_flexible else b"") + encode(request, version)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            received = self._receive_frame()
        except OSError as error:
            raise Unreachable(f"the broker at {self.address} stopped answering: {error}") from None
        is_api_versions = request.API_KEY == ApiKey.API_VERSIONS
        offset = 4
        if is_flexible and not is_api_versions:
            offset = 5 if received[4] == 0 else _after_tags(received, 4)
        if is_api_versions and received[4:6] == b"\0\x23":
            version = 0  # "unsupported version" is always said in version 0
        try:
            return decode(answer, version, received, offset)[0]
        except Malformed as error:
            raise Unreachable(f"the broker at {self.address} answered what cannot be read: {error}") from None

    def _receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        if not 4 <= size <= MAX_ANSWER_BYTES:
            raise ConnectionAbortedError(f"an answer of {size} bytes")
        return self._receive(size)

    def _receive(self, size_bytes: int) -> bytes:
        received = bytearray()
        while len(received) < size_bytes:
            chunk = self._socket.recv(min(1 << 20, size_bytes - len(received)))
            if not chunk:
                raise ConnectionResetError("it closed the connection")
            received += chunk
        return bytes(received)


def _after_tags(frame: bytes, offset: int) -> int:
    from penstock.wire.fields import skip_tags

    return skip_tags(memoryview(frame), offset)
