"""From a frame to its handler and back.

Each kind of failure has its own way. A refusal (`ApiError`) is answered with its code. If another broker does not answer, the
answer is REQUEST_TIMED_OUT. A disk fault is logged and answered with KAFKA_STORAGE_ERROR. Everything else is a bug: it is
logged with its traceback and answered with UNKNOWN_SERVER_ERROR.
A frame that cannot be read closes the connection with one log line, as in
Apache Kafka.
"""

import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import iscoroutinefunction
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.access.guards.engine import guarded
from penstock.broker.metrics.request_counts import ApiCounts, Counted, Timing, errors_noter
from penstock.broker.quotas.client_quotas import Meter
from penstock.broker.requests.call import Call
from penstock.broker.requests.forwarding import FORWARDED, for_client, forward, is_forwarded, must_forward
from penstock.broker.requests.large import LARGE_BYTES, LargeRequests
from penstock.broker.requests.later import Later, NowOrLater, settled
from penstock.broker.requests.portions import Portions
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.net.connection import Connection, Deferred
from penstock.net.output import Part
from penstock.net.peer_connection import PeerUnavailable
from penstock.wire import codec
from penstock.wire.apis import APIS
from penstock.wire.codec_source import decoder, encoder
from penstock.wire.errors import Malformed
from penstock.wire.framing import RequestHeader, read_header, response_prefix
from penstock.wire.schema import Message, Struct

if TYPE_CHECKING:
    from penstock.broker.node import Node

log = logging.getLogger("penstock.broker")

Reply = Sequence[Part] | Deferred | None
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
MAX_ERROR_MESSAGE_LENGTH: Final = 1000
TIMED_AGAIN_SECONDS: Final = 0.04


class Handler:
    """A handler module, looked at once."""

    __slots__ = (
        "before_forwarding",
        "counted",
        "counts",
        "handle",
        "handle_frame",
        "note_errors",
        "portions",
        "refuse",
        "request",
        "response",
    )

    def __init__(self, module: ModuleType, counts: ApiCounts | None = None) -> None:
        self.counts = counts or ApiCounts()
        self.counted = self.counts.counted(self)
        self.handle_frame: Callable[..., Reply] | None = getattr(module, "handle_frame", None)
        self.handle = _now_or_later(getattr(module, "handle", None))
        self.request: type[Message] | None = getattr(module, "REQUEST", None)
        self.response: type[Message] | None = getattr(module, "RESPONSE", None)
        self.refuse: Callable[..., Message] | None = getattr(module, "refuse", None)
        """The answer that refuses all of a request, of APIs that have an error for each part and none for the whole."""
        self.before_forwarding = _now_or_later(getattr(module, "before_forwarding", None))
        """The answer of the broker that the client asked, or None where it is for the controller."""
        self.portions: tuple[Portions, ...] = getattr(module, "PORTIONS", ())
        self.note_errors = errors_noter(self.response)


def _now_or_later(handle: Callable[..., Any] | None) -> Callable[..., NowOrLater[Any]] | None:
    if not iscoroutinefunction(handle):
        return handle
    return lambda node, call, request: Later(handle(node, call, request))


class Dispatch:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._handlers: dict[int, Handler] = {}
        self._untimed: dict[int, Counted[Handler]] = {}
        """Those whose next request is not timed. That one is timed costs the others nothing: a handler that is not in here must
        be looked for elsewhere anyway."""
        self._large = LargeRequests(node)

    def receive(self, connection: Connection, frame: memoryview) -> Reply:
        try:
            header = read_header(frame)
        except Malformed as error:
            connection.close(str(error))
            return None
        if header.api.between_brokers and not self._node.is_clustered:
            connection.close(f"{header.api.name} is for brokers of a cluster, and this one is alone")
            return None
        call = Call(connection, header)
        try:
            try:
                handler = next(self._untimed[header.api_key][header.api_version])
            except LookupError:
                return self._timed(call, frame)
            if handler.handle_frame is not None:
                return handler.handle_frame(self._node, call, frame, header.body_offset)
            return self._ordinary(handler, call, frame)
        except Malformed as error:
            connection.close(f"{header.api.name} version {header.api_version}: {error}")
        except Exception:
            log.exception("%s version %s failed", header.api.name, header.api_version)
            connection.close("an error in the broker")
        return None

    def _timed(self, call: Call, frame: memoryview) -> Reply:
        """The first request of an API, and the first after each TIMED_AGAIN_SECONDS."""
        api_key = call.header.api_key
        handler = self._handlers.get(api_key) or self.load(api_key)
        self._untimed[api_key] = handler.counted
        self._node.loop.call_later(TIMED_AGAIN_SECONDS, self._untimed.pop, api_key, None)
        handler.counts.note(call.header.api_version)
        timing = Timing(handler.counts.times, call.connection)
        handler.counts.times.request_bytes.note(len(frame))
        if handler.handle_frame is not None:
            reply = handler.handle_frame(self._node, call, frame, call.header.body_offset)
        else:
            reply = self._ordinary(handler, call, frame)
        timing.handled()
        if reply is None:
            timing.no_reply()
        elif not isinstance(reply, Deferred) or reply.is_ready:
            timing.ready()
        else:
            reply.timing = timing
        return reply

    def load(self, api_key: int) -> Handler:
        """Handlers are imported when their API is first asked for; the node does so ahead of time once it listens."""
        module = import_module(f"penstock.broker.handlers.{APIS[api_key].name}")
        handler = Handler(module, self._node.request_counts.of(api_key))
        self._handlers[api_key] = handler
        return handler

    def load_next(self) -> bool:
        """Import one more handler, compile its codec; False when all are there."""
        for api_key, api in APIS.items():
            if api_key not in self._handlers:
                handler = self.load(api_key)
                if handler.request is not None and handler.response is not None:
                    decoder(handler.request, api.max_version)
                    encoder(handler.response, api.max_version)
                return True
        return False

    def _ordinary(self, handler: Handler, call: Call, frame: memoryview) -> Reply:
        assert handler.handle is not None
        assert handler.request is not None
        header = call.header
        api = header.api
        if header.api_key == _API_VERSIONS and not api.min_version <= header.api_version <= api.max_version:
            request: Message = handler.request()  # its body is of a version we cannot read, and need not
            header = header._replace(api_version=api.max_version + 1)  # a negative one is no better
            call = Call(call.connection, header)
        elif len(frame) > LARGE_BYTES:
            return self._hold(handler, call, frame)
        else:
            request, _ = codec.decode(handler.request, header.api_version, frame, header.body_offset)
        if self._node.is_clustered and must_forward(self._node, call):
            deferred = call.connection.defer()
            self._node.answers.begin(self._forward(handler, call, request, bytes(frame), deferred))
            return deferred
        quotas = self._node.client_quotas
        began_s = quotas.now_s() if quotas.is_active else 0.0
        try:
            result = self._handle(handler, call, request)
        except Exception as error:
            return self._failed(handler, call, request, error)
        if isinstance(result, Later):
            deferred = call.connection.defer()
            self._node.answers.begin(self._later(handler, call, request, result, deferred))
            return deferred
        if quotas.is_active:
            quotas.answered(call, result, spent_s=quotas.now_s() - began_s)
        if handler.note_errors is not None and result is not None:
            handler.note_errors(result, handler.counts.errors)
        return encode_reply(header, result)

    def _hold(self, handler: Handler, call: Call, frame: memoryview) -> Reply:
        held = call.connection.hold(frame)
        if held is None:
            return None
        deferred = call.connection.defer()
        self._node.answers.begin(self._read_and_handle(handler, call, held, deferred))
        return deferred

    async def _read_and_handle(
        self, handler: Handler, call: Call, frame: memoryview, deferred: Deferred
    ) -> None:
        assert handler.request is not None
        node, header = self._node, call.header
        quotas = node.client_quotas
        meter = Meter(quotas) if quotas.is_active else None
        try:
            try:
                large = await self._large.read(handler.request, header, frame)
                if node.is_clustered and must_forward(node, call):
                    node.answers.begin(self._forward(handler, call, large.message, large.frame, deferred))
                    return
                answer = await self._large.begin(
                    lambda portion: self._answer_to(handler, call, portion, meter), large, handler.portions
                )
            finally:
                call.connection.release()
            response = await answer
            if meter is not None:
                quotas.answered(call, response, spent_s=meter.spent_s)
            if handler.note_errors is not None and response is not None:
                handler.note_errors(response, handler.counts.errors)
            reply = await node.pools.codecs.run(encode_reply, header, response)
        except Malformed as error:
            call.connection.close(f"{header.api.name} version {header.api_version}: {error}")
        except Exception:
            log.exception("%s version %s failed", header.api.name, header.api_version)
            call.connection.close("an error in the broker")
        else:
            self._answer(call, deferred, reply)

    async def _answer_to(
        self, handler: Handler, call: Call, request: Message, meter: Meter | None
    ) -> Message | None:
        """What the handler answers, or a refusal."""
        work = self._handle_later(handler, call, request)
        try:
            answer: Message | None = await (work if meter is None else meter.run(work))
            return answer
        except Exception as error:
            return self._refusal(handler, call, request, error)

    async def _forward(
        self, handler: Handler, call: Call, request: Message, frame: bytes, deferred: Deferred
    ) -> None:
        def refuse(reason: str) -> Sequence[Part] | None:
            return self._failed(handler, call, request, ApiError(ErrorCode.NOT_CONTROLLER, reason))

        try:
            if handler.before_forwarding is not None:
                answer = await settled(handler.before_forwarding(self._node, call, request))
                if answer is not None:
                    self._answer(call, deferred, encode_reply(call.header, answer))
                    return
            if is_forwarded(call):
                self._answer(call, deferred, refuse("this broker is no longer the controller"))
                return
            if await forward(self._node, call, frame, deferred, refuse):
                return
        except Exception as error:
            self._answer(call, deferred, self._failed(handler, call, request, error))
            return
        work = Later(self._handle_later(handler, call, request))
        await self._later(handler, call, request, work, deferred)

    def _handle(self, handler: Handler, call: Call, request: Message) -> NowOrLater[Any]:
        assert handler.handle is not None
        node = self._node
        if node.is_clustered and call.header.api_key in FORWARDED:
            call = for_client(node, call)
        if node.authorizer.is_on:
            assert handler.response is not None
            return guarded(handler.handle, handler.response, node, call, request)
        return handler.handle(node, call, request)

    async def _handle_later(self, handler: Handler, call: Call, request: Message) -> Any:
        return await settled(self._handle(handler, call, request))

    async def _later(
        self,
        handler: Handler,
        call: Call,
        request: Message,
        result: Later[Any],
        deferred: Deferred,
    ) -> None:
        quotas = self._node.client_quotas
        try:
            if quotas.is_active:
                meter = Meter(quotas)
                response = await meter.run(result)
                quotas.answered(call, response, spent_s=meter.spent_s)
            else:
                response = await result
            if handler.note_errors is not None and response is not None:
                handler.note_errors(response, handler.counts.errors)
            reply = encode_reply(call.header, response)
        except Exception as error:
            reply = self._failed(handler, call, request, error)
        self._answer(call, deferred, reply)

    def _answer(self, call: Call, deferred: Deferred, reply: Sequence[Part] | None) -> None:
        if not call.connection.is_closed:
            deferred.resolve(reply)

    def _failed(
        self, handler: Handler, call: Call, request: Message, error: Exception
    ) -> Sequence[Part] | None:
        refusal = self._refusal(handler, call, request, error)
        if handler.note_errors is not None and refusal is not None:
            handler.note_errors(refusal, handler.counts.errors)
        return encode_reply(call.header, refusal)

    def _refusal(self, handler: Handler, call: Call, request: Message, error: Exception) -> Message | None:
        """Answer with the error's code where the response has a place for it; otherwise there is only closing."""
        api = call.header.api
        if isinstance(error, ApiError):
            code, detail = error.code, error.detail
        elif isinstance(error, (PeerUnavailable, TimeoutError)):
            log.info("%s: %s", api.name, error)  # whoever asked may ask again
            code, detail = ErrorCode.REQUEST_TIMED_OUT, str(error) or None
        elif isinstance(error, OSError):
            log.error("%s: %s", api.name, error)
            code, detail = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
        else:
            log.error("%s version %s failed", api.name, call.api_version, exc_info=error)
            code, detail = ErrorCode.UNKNOWN_SERVER_ERROR, None
        assert handler.response is not None
        if handler.refuse is not None:
            return handler.refuse(request, code, detail)
        if "error_code" not in handler.response.__slots__:
            call.connection.close(f"{api.name}: {detail or code.name}")
            return None
        response: Any = handler.response()
        response.error_code = int(code)
        if "error_message" in handler.response.__slots__:
            response.error_message = detail
        refusal: Message = response
        return refusal


def encode_reply(header: RequestHeader, response: Message | None) -> Sequence[Part] | None:
    if response is None:
        return None
    version = header.api_version
    if header.api_key == _API_VERSIONS and version > header.api.max_version:
        version = 0  # the one form that every client reads
    try:
        body = codec.encode(response, version)
    except ValueError:
        shorten_messages(response)
        body = codec.encode(response, version)
    return (response_prefix(header, len(body)), body)


def shorten_messages(message: Struct) -> None:
    """A detail that quotes what the client sent may not fit in a string any more: a name has up to 32,767 bytes itself."""
    for name in message.__slots__:
        value = getattr(message, name)
        if name == "error_message" and value is not None:
            setattr(message, name, value[:MAX_ERROR_MESSAGE_LENGTH])
        for inner in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(inner, Struct):
                shorten_messages(inner)
