"""One blocking connection to one broker: requests and answers as frames.

A connection belongs to one thread. Whatever ends it is a ConnectionError or a TimeoutError, both OSError; a broker that
does not let us in, or that we do not trust, is an AccessRefused. TLS and logins are loaded where they are used: a command
at a plain cluster starts in 30 ms less without them.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar

import penstock
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.wire.codec import decode, encode
from penstock.wire.errors import Malformed
from penstock.wire.fields import skip_tags
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.schema import Message

if TYPE_CHECKING:
    from penstock.client.security import Login, Security

R = TypeVar("R", bound=Message)

MAX_ANSWER_BYTES: Final = (1 << 31) - 1
TRUSTED_BYTES: Final = 64 << 20  # of the size that an answer says it has: for more, bytes have to come first
_MAX_SMALL_ANSWER_BYTES: Final = 256 << 20
_FIRST_BYTES: Final = 1 << 20
GREETING_TIMEOUT_S: Final = 4.0  # a person who mistyped an address should not wait for longer
RENEWED_AT: Final = (0.82, 0.88)
"""Of a login's life, somewhere between the two: not all clients at once."""
_SIZE: Final = struct.Struct(">i")
_TLS_ALERT: Final = b"\x15\x03"


_GUESSES: Final = {
    False: "; does it want TLS? (option security.protocol)",
    True: "; does it want a certificate of ours? (option ssl.keystore.location)",
}
NEEDS_LOGIN: Final = "; does it want a login? (option security.protocol)"


class NoCommonVersion(ConnectionAbortedError):
    """The broker does not have this API in any version that we speak."""


class GreetingRefused(ConnectionAbortedError):
    """The broker answers, but not what it can do."""

    def __init__(self, code: int) -> None:
        super().__init__(f"it refused ApiVersions with error {code}")
        self.code = code


class BrokerConnection:
    def __init__(
        self,
        address: Address,
        *,
        client_id: str,
        timeout_s: float,
        greeting_timeout_s: float | None = None,
        security: Security | None = None,
    ) -> None:
        self.address = address
        self._guess = _GUESSES[security is not None and security.uses_tls]
        """Why the broker might close the connection, for as long as it has not answered what we came for."""
        self._client_id = client_id.encode()
        self._correlation_id = 0
        self._timeout_s = min(
            timeout_s, GREETING_TIMEOUT_S if greeting_timeout_s is None else greeting_timeout_s
        )
        # Until when an answer must have come as a whole; None: each part of it has the time of a whole one.
        self._deadline_s: float | None = None
        self._login: Login | None = None
        self.renewed_at_s = inf
        """From then on, by the monotonic clock, we log in again before the next request."""
        self._socket = _connected(address, self._timeout_s)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if security is not None and security.uses_tls:
                self._greet_by_tls(security)
            else:
                self._greet(security)
            self._timeout_s = timeout_s
            self._socket.settimeout(timeout_s)
        except BaseException:
            self._socket.close()
            raise

    def _greet_by_tls(self, security: Security) -> None:
        import ssl

        from penstock.client.tls import CLOSED, refusal, wrapped

        try:
            self._socket = wrapped(self._socket, self.address, security)
            self._greet(security)
        except CLOSED:
            raise ConnectionResetError(f"it closed the connection{self._guess}") from None
        except ssl.SSLError as error:
            raise refusal(error, self.address, security) from None

    def _greet(self, security: Security | None) -> None:
        self.api_versions = self._ask_versions()
        self._ranges = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in self.api_versions.api_keys
        }
        self._guess = NEEDS_LOGIN
        if security is not None and security.login is not None:
            self._login = security.login
            self._log_in(security.login)
            self._guess = ""

    def _log_in(self, login: Login) -> None:
        from penstock.client.login import log_in

        self.renewed_at_s = inf  # while we do
        began_s = time.monotonic()
        lifetime_ms = log_in(self, login)
        if lifetime_ms > 0:
            self.renewed_at_s = began_s + random.uniform(*RENEWED_AT) * lifetime_ms / 1000

    def _stay_logged_in(self) -> None:
        """Between an answer and the next request. AccessRefused where the broker does not want us any more."""
        if self._login is not None and time.monotonic() >= self.renewed_at_s:
            self._log_in(self._login)

    def close(self) -> None:
        self._socket.close()

    def interrupt(self) -> None:
        """From another thread: whoever waits for an answer gets a ConnectionError."""
        try:
            # Not SSLSocket's own, which would make the other thread read on without deciphering.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            pass

    def version(self, request: type[Message], *, highest: int | None = None) -> int:
        """The highest version that both sides have, up to `highest`; NoCommonVersion where there is none."""
        low, high = self._ranges.get(request.API_KEY, (0, -1))
        version = min(high, request.VERSIONS[1], request.VERSIONS[1] if highest is None else highest)
        if version < max(low, request.VERSIONS[0]):
            raise NoCommonVersion(f"it has no version of {ApiKey(request.API_KEY).name} that we speak")
        return version

    def ask(
        self, request: Message, answer: type[R], *, version: int | None = None, timeout_s: float | None = None
    ) -> R:
        """`timeout_s` is for an answer that may take longer than others."""
        chosen = self.version(type(request)) if version is None else version
        self._stay_logged_in()
        self._deadline_s = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        self.send(request, chosen)
        size = self.receive_size(_MAX_SMALL_ANSWER_BYTES)
        frame = memoryview(self.receive(size, bytearray(min(size, _FIRST_BYTES))))[:size]
        self._deadline_s = None
        self._socket.settimeout(self._timeout_s)
        return self._decoded(request, answer, chosen, frame)

    def offers(self, request: type[Message]) -> bool:
        return request.API_KEY in self._ranges

    def send(self, request: Message, version: int) -> None:
        self._stay_logged_in()
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = struct.pack(">hhih", request.API_KEY, version, self._correlation_id, len(self._client_id))
        tags = b"\0" if version >= request.FLEXIBLE_FROM else b""
        frame = b"".join((header, self._client_id, tags, encode(request, version)))
        self._socket.sendall(_SIZE.pack(len(frame)) + frame)

    def receive_size(self, max_bytes: int = MAX_ANSWER_BYTES) -> int:
        """Of the next answer; that many bytes are to be received then."""
        head = bytearray(4)
        self._receive_into(memoryview(head))
        if self._guess and head.startswith(_TLS_ALERT):
            raise ConnectionAbortedError("it speaks TLS (option security.protocol)")
        (size,) = _SIZE.unpack(head)
        if not 4 <= size <= max_bytes:
            raise ConnectionAbortedError("what answers there does not speak the Kafka protocol")
        return int(size)

    def receive(self, size: int, buffer: bytearray) -> bytearray:
        """The next bytes, at the beginning of the buffer or of a larger one: memory is taken as they come."""
        filled = 0
        while True:
            end = min(size, len(buffer))
            self._receive_into(memoryview(buffer)[filled:end])
            if end == size:
                return buffer
            larger = bytearray(min(size, 2 * end))
            larger[:end] = memoryview(buffer)[:end]
            buffer, filled = larger, end

    def _receive_into(self, view: memoryview) -> None:
        while view:
            if self._deadline_s is not None:
                left_s = self._deadline_s - time.monotonic()
                if left_s <= 0:
                    raise TimeoutError("it answers too slowly")
                self._socket.settimeout(left_s)
            try:
                received = self._socket.recv_into(view)
            except ConnectionResetError:
                received = 0
            if not received:
                raise ConnectionResetError(f"it closed the connection{self._guess}")
            view = view[received:]

    def body_offset(self, frame: memoryview, *, is_flexible: bool) -> int:
        """Where the body begins behind the header of an answer to the last request."""
        if _SIZE.unpack_from(frame)[0] != self._correlation_id:
            raise ConnectionAbortedError("it answered another request than ours")
        self._guess = ""
        try:
            return skip_tags(frame, 4) if is_flexible else 4
        except IndexError:
            raise Malformed("the answer ends in its header") from None

    def _decoded(self, request: Message, answer: type[R], version: int, frame: memoryview) -> R:
        is_api_versions = request.API_KEY == ApiKey.API_VERSIONS
        is_flexible = version >= request.FLEXIBLE_FROM and not is_api_versions
        try:
            offset = self.body_offset(frame, is_flexible=is_flexible)
            if is_api_versions and bytes(frame[4:6]) == _UNSUPPORTED:
                version = 0  # this refusal is always said in version 0
            return decode(answer, version, frame, offset)[0]
        except Malformed as error:
            raise ConnectionAbortedError(f"it answered what cannot be read: {error}") from None

    def _ask_versions(self) -> ApiVersionsResponse:
        """An older broker refuses the newest version and says which it has."""
        request = ApiVersionsRequest(
            client_software_name="penstock", client_software_version=penstock.__version__
        )
        answered = self.ask(request, ApiVersionsResponse, version=ApiVersionsRequest.VERSIONS[1])
        if answered.error_code == ErrorCode.UNSUPPORTED_VERSION:
            known = {entry.api_key: entry.max_version for entry in answered.api_keys}
            version = min(max(known.get(request.API_KEY, 0), 0), ApiVersionsRequest.VERSIONS[1])
            answered = self.ask(request, ApiVersionsResponse, version=version)
        if answered.error_code:
            raise GreetingRefused(answered.error_code)
        return answered


def _connected(address: Address, timeout_s: float) -> socket.socket:
    try:
        return socket.create_connection(address, timeout=timeout_s)
    except (UnicodeError, OverflowError):  # a cluster can say anything about where its brokers are
        raise ConnectionAbortedError("that is no host name and port") from None


_UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
