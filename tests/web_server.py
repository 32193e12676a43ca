"""Something that listens and does not speak Kafka's protocol."""

import contextlib
import socketserver
import threading
from collections.abc import Iterator


class _Web(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(4096)
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@contextlib.contextmanager
def a_web_server() -> Iterator[str]:
    """Its address."""
    server = socketserver.TCPServer(("127.0.0.1", 0), _Web)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
