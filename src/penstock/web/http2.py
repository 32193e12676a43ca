"""HTTP/2 connections: the sans-io library h2 between a transport and the same application that HTTP/1.1 has.

Plain connections begin with HTTP/2's preface ("prior knowledge"), those in TLS agree on `h2` (ALPN); `protocol` tells them apart
and hands them over. Bounds: streams at a time, size of headers, resets by the client, bytes that wait for a client that does not
read, and the time without a stream.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import H2Error, ProtocolError
from h2.settings import SettingCodes

from penstock.web.http2_stream import Stream

log = logging.getLogger("penstock.web")

MAX_STREAMS: Final = 100
MAX_RESETS: Final = 1000
"""Of a connection. Who begins and drops requests without end is sent away."""
MAX_UNSENT_BYTES: Final = 1 << 20
"""Of frames that h2 sends by itself, answers to pings and settings. Bodies wait for the client."""
CHUNK_BYTES: Final = 1 << 14


class Http2Protocol(asyncio.Protocol):
    def __init__(
        self,
        config: Any,
        server_state: Any,
        *,
        max_header_bytes: int,
        idle_timeout_s: float,
        certificate: bytes | None,
    ) -> None:
        self._app = config.loaded_app
        self._state = server_state
        self._certificate = certificate
        self._idle_timeout_s = idle_timeout_s
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._h2.local_settings.update(
            {
                SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
                SettingCodes.MAX_HEADER_LIST_SIZE: max_header_bytes,
            }
        )
        self._h2.decoder.max_header_list_size = max_header_bytes
        self._streams: dict[int, Stream] = {}
        self._resets = 0
        self._is_ending = False
        self._idle: asyncio.TimerHandle | None = None
        self.writable = asyncio.Event()
        self.writable.set()

    # ------------------------------------------------------------------ the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self._state.connections.add(self)
        self._h2.initiate_connection()
        self._flush()
        self._wait_idle()

    def data_received(self, data: bytes) -> None:
        try:
            events = self._h2.receive_data(data)
        except ProtocolError as error:
            log.debug("A client of HTTP/2 breaks its rules: %s", error)
            self._flush()
            self.transport.close()
            return
        for event in events:
            self._handle(event)
        self._flush()
        if self.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        if self._idle is not None:
            self._idle.cancel()
        for stream in list(self._streams.values()):
            stream.gone()
        self._streams.clear()
        self.writable.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def shutdown(self) -> None:
        """uvicorn's: no new streams, and the end when those that are there have ended."""
        self._is_ending = True
        self._end_if_done()

    # ------------------------------------------------------------------ events

    def _handle(self, event: Any) -> None:
        match event:
            case RequestReceived():
                self._begin_stream(event.stream_id, event.headers)
            case DataReceived(stream_id=stream_id):
                stream = self._streams.get(stream_id)
                if stream is None:
                    self.taken(stream_id, event.flow_controlled_length)
                else:
                    stream.given(event.data, event.flow_controlled_length)
            case StreamEnded(stream_id=stream_id) if stream_id in self._streams:
                self._streams[stream_id].whole()
            case StreamReset(stream_id=stream_id):
                self._was_reset(stream_id)
            case WindowUpdated():
                for stream in self._streams.values():
                    stream.may_send.set()
            case ConnectionTerminated():
                self.transport.close()
            case _:
                for stream in self._streams.values():  # settings may have made windows larger
                    stream.may_send.set()

    def _begin_stream(self, stream_id: int, headers: list[tuple[bytes, bytes]]) -> None:
        if self._is_ending:
            self.reset(stream_id, ErrorCodes.REFUSED_STREAM)
            return
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        stream = self._streams[stream_id] = Stream(self, stream_id)
        self._state.total_requests += 1
        task = stream.task = asyncio.get_running_loop().create_task(
            self._served(stream, self._scope(headers))
        )
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    async def _served(self, stream: Stream, scope: dict[str, Any]) -> None:
        try:
            await self._app(scope, stream.receive, stream.send)
        except Exception:
            log.exception("A bug in the application of a stream")
        finally:
            stream.finished()
            self._streams.pop(stream.id, None)
            self._end_if_done()

    def _scope(self, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
        special = {bytes(name): bytes(value) for name, value in headers if name.startswith(b":")}
        raw_path, _, query = special.get(b":path", b"/").partition(b"?")
        found = [(bytes(name), bytes(value)) for name, value in headers if not name.startswith(b":")]
        if b":authority" in special and not any(name == b"host" for name, _ in found):
            found.append((b"host", special[b":authority"]))
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "2",
            "method": special.get(b":method", b"GET").decode("latin-1"),
            "scheme": special.get(b":scheme", b"http").decode("latin-1"),
            "path": unquote(raw_path.decode("latin-1")),
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": found,
            "client": self.transport.get_extra_info("peername"),
            "server": self.transport.get_extra_info("sockname"),
        }
        if self._certificate is not None:
            scope["penstock.certificate"] = self._certificate
        return scope

    def _was_reset(self, stream_id: int) -> None:
        stream = self._streams.pop(stream_id, None)
        if stream is not None:
            stream.gone()
        self._resets += 1
        if self._resets > MAX_RESETS:
            self._leave(ErrorCodes.ENHANCE_YOUR_CALM)

    # ------------------------------------------------------------------ for streams

    def room(self, stream_id: int) -> int:
        """How many bytes of a body may be sent now."""
        try:
            return min(
                self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size, CHUNK_BYTES
            )
        except H2Error:
            return CHUNK_BYTES  # it has gone, and `send_data` drops what comes

    def begin(self, stream_id: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._done(lambda: self._h2.send_headers(stream_id, headers))

    def send_data(self, stream_id: int, data: bytes) -> None:
        self._done(lambda: self._h2.send_data(stream_id, data))

    def finish(self, stream_id: int) -> None:
        self._done(lambda: self._h2.end_stream(stream_id))

    def reset(self, stream_id: int, code: ErrorCodes = ErrorCodes.INTERNAL_ERROR) -> None:
        self._done(lambda: self._h2.reset_stream(stream_id, code))

    def taken(self, stream_id: int, size: int) -> None:
        """The application has it: the client may send as much again."""
        if size:
            self._done(lambda: self._h2.acknowledge_received_data(size, stream_id))

    def _done(self, step: Any) -> None:
        try:
            step()
        except H2Error:
            return  # the client has left this stream meanwhile
        self._flush()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def _end_if_done(self) -> None:
        if self._streams or self.transport.is_closing():
            return
        if self._is_ending:
            self._leave(ErrorCodes.NO_ERROR)
        else:
            self._wait_idle()

    def _leave(self, code: ErrorCodes) -> None:
        self._h2.close_connection(code)
        self._flush()
        self.transport.close()

    def _wait_idle(self) -> None:
        if self._idle is None:
            self._idle = asyncio.get_running_loop().call_later(self._idle_timeout_s, self.shutdown)
