"""A TCP proxy on the loopback address whose network can fail: between a client and a server, from a thread of its own."""

import selectors
import socket
import threading
from types import TracebackType
from typing import Any, Self

CHUNK_BYTES = 65_536
TICK_S = 0.05


class Proxy:
    """Passes bytes to `target` ("host:port"), until told otherwise:

    `stall()` loses every byte and keeps the connections: a network that drops packets. New ones are taken and
    stay silent, and neither side learns that the other has gone. `stall(answers_only=True)` loses what the server
    says. `cut()` closes all connections and refuses new ones: a process that ended. `heal()` ends all of it; connections that
    were stalled are closed, as bytes of theirs are gone.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._stalled: frozenset[int] = frozenset()  # of (0: what the client says, 1: what the server says)
        self._is_closed = False
        self._listener: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        with socket.create_server(("127.0.0.1", 0)) as reserved:
            self.port = reserved.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._listen()
        self._thread = threading.Thread(target=self._run, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()

    def stall(self, *, answers_only: bool = False) -> None:
        with self._lock:
            self._stalled = frozenset({1} if answers_only else {0, 1})

    def cut(self) -> None:
        with self._lock:
            self._stop_listening()
            self._close_pairs()

    def heal(self) -> None:
        with self._lock:
            if self._stalled:
                self._stalled = frozenset()
                self._close_pairs()
            self._listen()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._stop_listening()
            self._close_pairs()
        self._thread.join()
        self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # With the lock held.

    def _listen(self) -> None:
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def _close_pairs(self) -> None:
        for pair in tuple(self._pairs):
            self._close_pair(pair)

    def _close_pair(self, pair: tuple[socket.socket, socket.socket]) -> None:
        self._pairs.remove(pair)
        for each in pair:
            self._ignore(each)
            each.close()

    def _ignore(self, each: socket.socket) -> None:
        if each in self._selector.get_map():
            self._selector.unregister(each)

    # The thread.

    def _run(self) -> None:
        while True:
            ready = self._selector.select(TICK_S)
            with self._lock:
                if self._is_closed:
                    return
                for key, _ in ready:
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        self._pass(key.fileobj)

    def _accept(self) -> None:
        assert self._listener is not None
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.close()
            return
        self._pairs.append((client, server))
        for each in (client, server):
            each.settimeout(5)
            self._selector.register(each, selectors.EVENT_READ)

    def _pass(self, source: Any) -> None:
        for pair in self._pairs:
            if source in pair:
                break
        else:
            return  # closed since
        side = pair.index(source)
        try:
            data = pair[side].recv(CHUNK_BYTES)
        except OSError:
            data = b""
        if side in self._stalled:
            if not data:
                self._ignore(pair[side])
            return
        try:
            if data:
                pair[1 - side].sendall(data)
        except OSError:
            data = b""
        if not data:
            self._close_pair(pair)
