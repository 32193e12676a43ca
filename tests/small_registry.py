"""A schema registry as small as tests need one: ids, newest versions, lookups, registration, and a login."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class SmallRegistry:
    """`asked` has the paths of all requests."""

    def __init__(self, authorization: str | None = None) -> None:
        self.asked: list[str] = []
        self._authorization = authorization
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}
        self._lock = threading.Lock()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry._answer(self, None)

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                registry._answer(self, json.loads(self.rfile.read(size)))

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def subjects(self) -> dict[str, int]:
        return {subject: len(ids) for subject, ids in self._subjects.items()}

    def add(
        self, subject: str, schema: Any, kind: str = "AVRO", references: list[dict[str, Any]] | None = None
    ) -> int:
        """The id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        entry = {"schema": text, "schemaType": kind, "references": references or []}
        with self._lock:
            if entry not in self._schemas:
                self._schemas.append(entry)
            schema_id = self._schemas.index(entry) + 1
            ids = self._subjects.setdefault(subject, [])
            if schema_id not in ids:
                ids.append(schema_id)
            return schema_id

    def _answer(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        self.asked.append(f"{handler.command} {handler.path}")
        if self._authorization and handler.headers.get("Authorization") != self._authorization:
            status, said = 401, {"error_code": 401, "message": "Unauthorized"}
        else:
            parts = [unquote(part) for part in urlsplit(handler.path).path.strip("/").split("/")]
            status, said = self._said(parts, body)
        data = json.dumps(said).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _said(self, parts: list[str], body: Any) -> tuple[int, dict[str, Any]]:
        match parts:
            case ["schemas", "ids", number] if int(number) <= len(self._schemas):
                return 200, self._schemas[int(number) - 1]
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", subject, "versions"] if body is not None:
                found = self.add(
                    subject, body["schema"], body.get("schemaType", "AVRO"), body.get("references")
                )
                return 200, {"id": found}
            case ["subjects", subject, *_] if subject not in self._subjects:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            case ["subjects", subject, "versions", version]:
                ids = self._subjects[subject]
                number = len(ids) if version == "latest" else int(version)
                if number > len(ids):
                    return 404, {"error_code": 40402, "message": "Version not found."}
                schema_id = ids[number - 1]
                return 200, {
                    "subject": subject,
                    "version": number,
                    "id": schema_id,
                    **self._schemas[schema_id - 1],
                }
            case ["subjects", subject]:
                for schema_id in self._subjects[subject]:
                    if self._schemas[schema_id - 1]["schema"] == body["schema"]:
                        return 200, {"id": schema_id, "subject": subject}
                return 404, {"error_code": 40403, "message": "Schema not found"}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


@contextmanager
def small_registry(authorization: str | None = None) -> Iterator[SmallRegistry]:
    running = SmallRegistry(authorization)
    try:
        yield running
    finally:
        running.stop()
