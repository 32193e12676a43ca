"""A small HTTP service of the tests' own: `bell_server.py FOLDER HOST PORT BOOTSTRAP`.

GET /health is answered with 200, and with 503 while there is a file `sick` in its folder. With a file `broken` it ends at its
start. It writes a line to stderr for each request but those for its health.
"""

import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType

folder, host, port, bootstrap = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]


class Bell(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_sick = self.path == "/health" and (folder / "sick").exists()
        self.send_response(503 if is_sick else 200)
        self.end_headers()

    def log_message(self, format: str, *words: object) -> None:
        if self.path != "/health":
            print(f"the bell rings: {self.path}", file=sys.stderr, flush=True)


def end(number: int, frame: FrameType | None) -> None:
    print("the bell is silent", file=sys.stderr, flush=True)
    sys.exit(0)


if (folder / "broken").exists():
    sys.exit("the bell is broken")
signal.signal(signal.SIGTERM, end)
print(f"the bell hangs at {host}:{port}, and rings for {bootstrap}", file=sys.stderr, flush=True)
ThreadingHTTPServer((host, port), Bell).serve_forever()
