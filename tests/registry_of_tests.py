"""A schema registry that keeps its schemas in memory and knows no rules: for tests of those who ask one."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class RegistryOfTests:
    """`authorization`: the header without which it answers 401."""

    def __init__(self) -> None:
        self.url = ""
        self.schemas: list[dict[str, Any]] = []
        """By id - 1: what was posted."""
        self.subjects: dict[str, list[int]] = {}
        self.authorization: str | None = None

    def register(self, subject: str, schema: str, **more: Any) -> int:
        posted = {"schema": schema, **more}
        if posted not in self.schemas:
            self.schemas.append(posted)
        number = self.schemas.index(posted) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        found = re.fullmatch(r"/schemas/ids/(\d+)", path)
        if found is not None:
            number = int(found[1])
            if number > len(self.schemas):
                return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
            return 200, self.schemas[number - 1]
        found = re.fullmatch(r"/subjects/([^/]+)(?:/versions(?:/(.+))?)?", path)
        assert found is not None, path
        subject = unquote(found[1])
        if method == "POST" and path.endswith("/versions"):
            return 200, {"id": self.register(subject, **body)}
        versions = self.subjects.get(subject)
        if versions is None:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        if method == "POST":
            known = [number for number in versions if self.schemas[number - 1] == body]
            if not known:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            return 200, {"subject": subject, "id": known[0], "version": versions.index(known[0]) + 1, **body}
        version = len(versions) if found[2] == "latest" else int(found[2])
        number = versions[version - 1]
        return 200, {"subject": subject, "id": number, "version": version, **self.schemas[number - 1]}


@contextmanager
def registry_of_tests() -> Iterator[RegistryOfTests]:
    registry = RegistryOfTests()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            wanted = registry.authorization
            if wanted is not None and self.headers.get("Authorization") != wanted:
                status, said = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, said = registry.answer(method, urlsplit(self.path).path, json.loads(data or b"null"))
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
