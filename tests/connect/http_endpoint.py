"""An HTTP endpoint as a process of its own: keeps what it is sent, and answers as it is told.

`POST /told` with {"path": {"status": 500, "times": 2, "body": …}} says what comes next; `GET /kept` gives all requests.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEPT: list[dict[str, Any]] = []
TOLD: dict[str, dict[str, Any]] = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = self.path.partition("?")[0]
        if path == "/told":
            TOLD.update(json.loads(body))
            self._answer(200, "{}")
        elif path == "/kept":
            self._answer(200, json.dumps(KEPT))
        elif path == "/token":
            KEPT.append({"path": self.path, "body": body, "headers": dict(self.headers)})
            number = sum(each["path"] == "/token" for each in KEPT)
            self._answer(200, json.dumps({"access_token": f"token-{number}", "expires_in": 3600}))
        else:
            self._reply(path, body)

    def _reply(self, path: str, body: str) -> None:
        told = TOLD.get(path, {})
        status = 200
        if told.get("times", 0) > 0:
            told["times"] -= 1
            status = told["status"]
        if "refuses" in told and told["refuses"] in body:
            status = 400
        if "wants" in told and self.headers.get("Authorization") != told["wants"]:
            status = 401
        KEPT.append({"path": self.path, "status": status, "body": body, "headers": dict(self.headers)})
        self._answer(status, json.dumps(told.get("body", {})))

    do_GET = do_POST = _handle

    def _answer(self, status: int, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
