"""What is measured beside Karapace, and what is not where it is not there."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.clients.ask_http import Connection, end_of_answer, request_bytes
from bench.measure import Sample, Scale
from bench.report import markdown, summarise_all
from bench.runner import Results
from bench.servers import KARAPACE, SERVICES
from bench.services import check_karapace
from bench.workloads.services import RegistryRequests, RegistryStart, RestProduce, produce_request, schema

WORKLOADS = (RegistryRequests(), RegistryStart(), RestProduce())


def test_an_answer_is_whole_when_its_body_is() -> None:
    head = b"HTTP/1.1 200 OK\r\ndate: now\r\nContent-Length: 4\r\n\r\n"
    assert end_of_answer(head[:-1]) is None
    assert end_of_answer(head + b"{}  "[:3]) is None
    assert end_of_answer(head + b"{}  and more") == len(head) + 4


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"]
)
def test_an_answer_that_does_not_count_ends_the_client(head: bytes) -> None:
    with pytest.raises(SystemExit, match="not 200 with its length"):
        end_of_answer(head)


def test_a_connection_sends_its_share_of_the_requests() -> None:
    heard: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            heard.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            requests = [request_bytes("POST", f"/{number}", "text/plain", "ä") for number in range(3)]
            connection = Connection(server.server_port, requests, 1, 2)
            with connection.socket:
                for _ in range(3):
                    connection.send()
                    while not connection.receive():
                        pass
        finally:
            server.shutdown()
            thread.join()
    assert heard == [(path, "ä".encode()) for path in ("/1", "/0", "/2")]


def test_without_karapace_only_bounds_on_our_own_figures_are_measured() -> None:
    alone, beside = Scale(quick=False), Scale(quick=False, karapace=Path("somewhere"))
    assert [each.rounds(alone) > 0 for each in WORKLOADS] == [False, True, False]
    assert all(each.rounds(beside) == 3 for each in WORKLOADS)
    assert all(row.bounds == "value" for row in RegistryStart.rows)


def test_a_folder_that_is_no_karapace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no checkout of Karapace"):
        check_karapace(tmp_path)


def test_rows_beside_karapace_have_a_table_of_their_own() -> None:
    results, workload = Results(), WORKLOADS[0]
    results.add(workload.name, KARAPACE, Sample({"get": 100.0}, {"get": 3.0}))
    results.add(workload.name, SERVICES, Sample({"get": 300.0}, {"get": 1.0}))
    lines = summarise_all([workload], results, "today")
    text = markdown(lines, {}, results, Scale(quick=False))
    assert "## Schema registry and REST proxy\n\n| | Karapace | Penstock | ratio |" in text
    assert "| 100 | 300 | 3.00 × | ≥ 2 × | yes | 3.00 / 1.00 s per 1,000 requests |" in text
    assert "Java produce" not in text


def test_what_is_sent_is_what_the_rows_say() -> None:
    records = json.loads(produce_request("t", 3)["body"])["records"]
    sizes = [len(json.dumps(each["value"], separators=(",", ":"))) for each in records]
    assert (len(records), min(sizes) >= 90, max(sizes) <= 110) == (100, True, True)
    assert len(json.loads(schema(7))["fields"]) == 10
    assert len(json.loads(schema(7, more=True))["fields"]) == 11
