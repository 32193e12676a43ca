"""Other brokers, as this one asks them: `peers.ask(3, request, Response, version=…, timeout_s=…)`.

A connection is made at the first question and again after it was lost; several questions may be on their way in it, and are
answered in order. Each purpose has a connection of its own, so that a long poll never delays the controller's requests.

A login at another broker may end after a time (`connections.max.reauth.ms` there, or an access token's end). Before that a
successor is made, with a login of its own, while the old connection is still asked. Then what is asked waits until all on the old
one is answered, and goes to the successor: so the other broker gets requests in the order in which they were asked. (Those
who waited, and who asks in the very turn in which they go on, have no order among them.)

Every failure is `PeerUnavailable` with the broker's address in its one line: no address, no connection, no answer within
`timeout_s`, an answer that cannot be read. No request is repeated automatically: only the caller can find out whether a failed
request was carried out.
"""

import asyncio
import os
import random
import socket
from asyncio import AbstractEventLoop, CancelledError, Future, Task, TimerHandle
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import inf
from typing import Final, Literal, NamedTuple, TypeVar

from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Address
from penstock.net.output import Part
from penstock.net.peer_connection import SCRATCH_BYTES, Answer, PeerConnection, PeerUnavailable
from penstock.runtime.pools import Pool, Pools
from penstock.wire import codec
from penstock.wire.apis import APIS
from penstock.wire.errors import Malformed
from penstock.wire.fields import I32
from penstock.wire.framing import MIN_FRAME_BYTES, SIZE, request_prefix, response_body_offset
from penstock.wire.schema import Message

__all__ = ["Connect", "Entered", "Peer", "PeerUnavailable", "Peers", "Purpose", "default_connect"]

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
"""A fetch answer is at least one whole batch, and that one at most a whole request (100 MiB unless set otherwise)."""
CONNECT_TIMEOUT_S: Final = 10.0
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
RENEWED_AT: Final = (0.82, 0.88)
"""Of a login's life, somewhere between the two: not all connections at once."""
SENT_UNTIL: Final = 0.93
"""Of a login's life: what is sent later might come when it is over."""


class Entered(NamedTuple):
    """A connected non-blocking socket, and for how long the login on it is good, counted from before it was made."""

    socket: socket.socket
    lifetime_s: float = inf


Connect = Callable[[str, int], Awaitable[Entered]]
"""OSError where there is none. The deadline is the caller's, by cancelling."""
Purpose = Literal["control", "fetch", "forward", "transactions", "markers"]
R = TypeVar("R", bound=Message)


class Peers:
    def __init__(
        self,
        loop: AbstractEventLoop,
        client_id: str,
        connect: Connect | None = None,
        *,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.loop: Final = loop
        self.client_id: Final = client_id.encode()
        self.connect: Final = connect or partial(default_connect, names=Pools(loop).names)
        self.max_answer_bytes: Final = max_answer_bytes
        self.scratch: Final = memoryview(bytearray(SCRATCH_BYTES))
        self._addresses: dict[int, Address] = {}
        self._peers: dict[tuple[int, Purpose], Peer] = {}
        self._is_closed = False

    def set_address(self, broker_id: int, host: str, port: int) -> None:
        """Where the broker is from now on; connections to where it was are closed."""
        if self._addresses.get(broker_id) != (host, port) and not self._is_closed:
            self.forget(broker_id)
            self._addresses[broker_id] = Address(host, port)

    def address(self, broker_id: int) -> Address | None:
        return self._addresses.get(broker_id)

    def forget(self, broker_id: int) -> None:
        self._addresses.pop(broker_id, None)
        for (known_id, _), peer in self._peers.items():
            if known_id == broker_id:
                peer.disconnect("it is not there any more")

    def peer(self, broker_id: int, purpose: Purpose = "control") -> "Peer":
        """The same object each time, whether the broker is there or not."""
        peer = self._peers.get((broker_id, purpose))
        if peer is None:
            peer = self._peers[broker_id, purpose] = Peer(self, broker_id)
        return peer

    async def ask(
        self,
        broker_id: int,
        request: Message,
        response: type[R],
        *,
        version: int,
        timeout_s: float,
        purpose: Purpose = "control",
    ) -> R:
        return await self.peer(broker_id, purpose).ask(
            request, response, version=version, timeout_s=timeout_s
        )

    def close(self) -> None:
        self._is_closed = True
        self._addresses.clear()
        for peer in self._peers.values():
            peer.disconnect("this broker is stopping")


class Peer:
    """A broker, for one purpose: one connection at a time, and where its login ends soon a successor."""

    def __init__(self, peers: Peers, broker_id: int) -> None:
        self._peers = peers
        self._broker_id = broker_id
        self._connection: PeerConnection | None = None
        self._successor: PeerConnection | None = None
        """It is there, and waits until all that was asked on the connection is answered."""
        self._connecting: Future[PeerConnection] | None = None
        """Done when the one that is being made can be asked."""
        self._task: Task[None] | None = None
        self._renewal: TimerHandle | None = None
        self._failures = 0
        """In a row: no connection, or one that ended before its first answer."""
        self._not_before = 0.0

    async def ask(self, request: Message, response: type[R], *, version: int, timeout_s: float) -> R:
        body = codec.encode(request, version)
        is_flexible = version >= request.FLEXIBLE_FROM
        api_key = request.API_KEY
        frame = await self._ask_body(api_key, version, (body,), len(body), timeout_s, is_flexible=is_flexible)
        try:
            offset = response_body_offset(memoryview(frame), api_key, is_flexible=is_flexible)
            return codec.decode(response, version, frame, offset)[0]
        except Malformed as error:
            raise self._unreadable(error) from None

    async def ask_raw(
        self, api_key: int, version: int, body: bytes | Sequence[Part], *, timeout_s: float
    ) -> memoryview:
        """For bodies that have codecs of their own: the body's bytes, or its parts in order; the answer's body as received."""
        is_flexible = version >= APIS[api_key].flexible_from
        parts: Sequence[Part] = (body,) if isinstance(body, bytes) else body
        body_bytes = sum(len(part) for part in parts)
        frame = await self._ask_body(api_key, version, parts, body_bytes, timeout_s, is_flexible=is_flexible)
        view = memoryview(frame)
        try:
            return view[response_body_offset(view, api_key, is_flexible=is_flexible) :]
        except Malformed as error:
            raise self._unreadable(error) from None

    async def relay(self, frame: bytes, timeout_s: float) -> Answer:
        """A client's whole request, and its whole answer; both without their sizes, with the client's correlation id."""
        if len(frame) < MIN_FRAME_BYTES:
            raise ValueError(f"{len(frame)} bytes are not a request")

        def prefix(correlation_id: int) -> bytes:
            return SIZE.pack(len(frame)) + frame[:4] + I32.pack(correlation_id)

        rest = memoryview(frame)[8:]
        what = ApiKey(int.from_bytes(frame[:2], "big")).name
        answer = await self._exchange(prefix, (rest,), len(rest), what, timeout_s)
        if isinstance(answer, bytes):
            return frame[4:8] + answer[4:]
        answer[:4] = frame[4:8]
        return answer

    def disconnect(self, reason: str) -> None:
        """Close the connection; whoever waits for an answer, or for the connection, is told the reason."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._connecting is not None and not self._connecting.done():
            self._connecting.set_exception(PeerUnavailable(f"broker {self._broker_id}: {reason}"))
        self._connecting = None
        successor, self._successor = self._successor, None
        for connection in (successor, self._connection):
            if connection is not None:
                connection.close(reason)
        self._failures = 0
        self._not_before = 0.0

    # --- inside

    def _unreadable(self, error: Malformed) -> PeerUnavailable:
        """An answer that is none: who knows what the next ones would be."""
        reason = f"an answer that cannot be read: {error}"
        if self._connection is not None:
            self._connection.close(reason)
        return PeerUnavailable(f"{self._address_text()}: {reason}")

    async def _ask_body(
        self,
        api_key: int,
        version: int,
        body: Sequence[Part],
        body_bytes: int,
        timeout_s: float,
        *,
        is_flexible: bool,
    ) -> Answer:
        def prefix(correlation_id: int) -> bytes:
            return request_prefix(
                api_key,
                version,
                correlation_id=correlation_id,
                client_id=self._peers.client_id,
                is_flexible=is_flexible,
                body_bytes=body_bytes,
            )

        return await self._exchange(prefix, body, body_bytes, ApiKey(api_key).name, timeout_s)

    async def _exchange(
        self,
        prefix: Callable[[int], bytes],
        body: Sequence[Part],
        body_bytes: int,
        what: str,
        timeout_s: float,
    ) -> Answer:
        deadline = self._peers.loop.time() + timeout_s
        connection = self._connection
        if (
            connection is None
            or self._successor is not None
            or self._peers.loop.time() >= connection.lasts_until
        ):
            connection = await self._connected(deadline)
        answer = connection.ask(prefix, body, body_bytes=body_bytes, what=what, deadline=deadline)
        try:
            return await answer
        except CancelledError:
            connection.give_up(answer)
            raise

    def _address_text(self) -> str:
        address = self._peers.address(self._broker_id)
        return f"broker {self._broker_id}" if address is None else str(address)

    async def _connected(self, deadline: float) -> PeerConnection:
        """The connection; one attempt is made for all who wait for it."""
        connecting = self._connecting or self._begin_to_connect()
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(connecting)
        except TimeoutError:
            raise PeerUnavailable(f"{self._address_text()}: no connection in time") from None

    def _begin_to_connect(self) -> "Future[PeerConnection]":
        address = self._peers.address(self._broker_id)
        if address is None:
            raise PeerUnavailable(f"broker {self._broker_id}: its address is not known")
        loop = self._peers.loop
        connecting = self._connecting = loop.create_future()
        # It may fail after all who waited have given up.
        connecting.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._task = loop.create_task(self._connect(connecting, *address))
        return connecting

    async def _connect(self, connecting: "Future[PeerConnection]", host: str, port: int) -> None:
        peers = self._peers
        address = str(Address(host, port))
        await asyncio.sleep(max(0.0, self._not_before - peers.loop.time()))
        began_at = peers.loop.time()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                entered = await peers.connect(host, port)
        except (OSError, ValueError, OverflowError) as error:  # the last two: no name, no port number
            self._connecting = None
            self._failed()
            connecting.set_exception(PeerUnavailable(f"{address}: {_cause(error)}"))
            if self._connection is not None:  # which may be good for a while: tried again
                self._renew_at(self._not_before, self._connection)
            return
        connection = PeerConnection(
            entered.socket,
            peers.loop,
            peers.scratch,
            address=address,
            max_answer_bytes=peers.max_answer_bytes,
            on_close=self._closed,
        )
        connection.lasts_until = began_at + SENT_UNTIL * entered.lifetime_s
        self._successor = connection
        if entered.lifetime_s < inf:
            self._renew_at(began_at + random.uniform(*RENEWED_AT) * entered.lifetime_s, connection)
        before = self._connection
        if before is not None and before.is_busy:
            before.on_idle = self._hand_over
        else:
            self._hand_over()

    # --- a login that ends

    def _hand_over(self) -> None:
        """From now on the successor is asked."""
        before, self._connection, self._successor = self._connection, self._successor, None
        connecting, self._connecting = self._connecting, None
        if connecting is not None and self._connection is not None:
            connecting.set_result(self._connection)
        if before is not None:
            before.close("another connection has taken its place")

    def _renew_at(self, when: float, connection: PeerConnection) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        self._renewal = self._peers.loop.call_at(when, self._renew, connection)

    def _renew(self, connection: PeerConnection) -> None:
        self._renewal = None
        if self._connecting is not None or connection is not self._connection:
            return
        if not connection.was_asked:  # whoever asks next connects again
            connection.was_given_up = True
            connection.close("nobody has asked anything on it")
        elif self._peers.address(self._broker_id) is not None:
            self._begin_to_connect()

    def _failed(self) -> None:
        pause_s = min(FIRST_PAUSE_S * 2 ** min(self._failures, 10), LONGEST_PAUSE_S)
        self._failures += 1
        self._not_before = self._peers.loop.time() + pause_s

    def _closed(self, connection: PeerConnection) -> None:
        if connection is self._successor:
            self._successor = None
            self._failed()
            if self._connection is not None:
                self._connection.on_idle = None
                self._renew_at(self._not_before, self._connection)
            connecting, self._connecting = self._connecting, None
            if connecting is not None:
                reason = "the new connection was lost before it was asked"
                connecting.set_exception(PeerUnavailable(f"{connection.address}: {reason}"))
            return
        if connection is not self._connection:
            return  # another has taken its place
        self._connection = None
        if connection.has_answered:
            self._failures = 0
            self._not_before = 0.0
        elif not connection.was_given_up:
            self._failed()
        if self._successor is not None:
            self._hand_over()
        elif self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None


def _cause(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no connection in time"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error)


async def default_connect(host: str, port: int, *, names: Pool) -> Entered:
    """A TCP connection to the first address of the host that takes one; `names` looks the host up."""
    loop = asyncio.get_running_loop()
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    error: OSError = ConnectionRefusedError("its name has no address")
    for family, kind, protocol, _, address in await names.run(look_up):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, address)
            if sock.getsockname() == sock.getpeername():
                # On one machine a port that nobody listens on may be the one that this socket itself was given.
                raise ConnectionRefusedError("nobody listens there")
            return Entered(sock)
        except OSError as failure:
            sock.close()
            error = failure
        except BaseException:
            sock.close()
            raise
    raise error
