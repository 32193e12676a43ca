"""The HTTP sink and source, with an endpoint that is a process of its own."""

from __future__ import annotations

import itertools
import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.connect.connectors.http.sink import HttpSink, HttpSinkTask
from penstock.connect.connectors.http.source import HttpSource, HttpSourceTask, at_path
from penstock.connect.data import INT64, struct
from penstock.connect.errors import ConnectError, DataError, Hopeless, RetriableError
from penstock.testing.processes import free_port, start_process
from tests.connect.tasks_alone import polled, records, sink_task, source_task
from tests.connect.workers import until

_numbers = itertools.count(1)


class Place:
    """A path of the test's own at the endpoint."""

    def __init__(self, base: str) -> None:
        self.base, self.path = base, f"/p{next(_numbers)}"
        self.url = base + self.path

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.base + path, data, timeout=10) as answer:
            return json.loads(answer.read())

    def tell(self, **what: Any) -> None:
        self.ask("/told", {self.path: what})

    def kept(self) -> list[Any]:
        return [each for each in self.ask("/kept") if each["path"].startswith(self.path)]

    def bodies(self) -> list[str]:
        return [each["body"] for each in self.kept() if each["status"] == 200]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    script = Path(__file__).with_name("http_endpoint.py")
    log = tmp_path_factory.mktemp("http") / "log"
    with start_process([sys.executable, script, str(port)], name="endpoint", log_path=log) as process:
        process.wait_for_port(port)
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def place(endpoint: str) -> Place:
    return Place(endpoint)


def config(place: Place, **more: str) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"http.url": place.url, "http.authorization.type": "none", "retry.backoff.ms": "5", **given}


def test_each_record_is_a_request(place: Place) -> None:
    schema = struct("s", id=INT64)
    given = config(
        place, http_headers_content_type="application/json", http_headers_additional="X-One:1,X-Two:a:b"
    )
    with sink_task(HttpSinkTask, given) as task:
        task.put(records("t", "text", {"a": [1, None]}, schema.new(id=5), b"bytes"))
    assert place.bodies() == ["text", '{"a":[1,null]}', '{"id":5}', "bytes"]
    headers = place.kept()[0]["headers"]
    assert (headers["Content-Type"], headers["X-One"], headers["X-Two"]) == ("application/json", "1", "a:b")


def test_batches_have_prefix_separator_and_suffix(place: Place) -> None:
    given = config(
        place,
        batching_enabled="true",
        batch_max_size="2",
        batch_prefix="[",
        batch_separator=",",
        batch_suffix="]\\n",
    )
    with sink_task(HttpSinkTask, given) as task:
        task.put(records("t", "1", "2", "3"))
    assert place.bodies() == ["[1,2]\n", "[3]\n"]
    with sink_task(HttpSinkTask, config(place, batching_enabled="true")) as task:
        task.put(records("t", "1", "2"))
    assert place.bodies()[-1] == "1\n2\n"


def test_what_was_sent_is_not_sent_again(place: Place) -> None:
    with sink_task(HttpSinkTask, config(place, max_retries="2")) as task:
        task.put(records("t", "0"))
        place.tell(status=503, times=2)
        many = records("t", "0", "1", "2")
        for _ in range(2):
            with pytest.raises(RetriableError, match="503"):
                task.put(many)
            assert task.context.retry_s == 0.005
        task.put(many)
        assert place.bodies() == ["0", "1", "2"]
        place.tell(status=500, times=3)
        for kind in (RetriableError, RetriableError, ConnectError):
            with pytest.raises(kind):
                task.put(records("t", "3", first=3))


def test_a_record_that_is_refused_is_told_and_the_others_are_sent(place: Place) -> None:
    place.tell(refuses="bad")
    given = config(place, batching_enabled="true")
    with sink_task(HttpSinkTask, given) as task:
        task.put(records("t", "1", "bad", "3", None, b"\xff", "4"))
        told = {record.offset: error for record, error in task.context.reported}
    assert told.keys() == {1, 3, 4}
    assert all(isinstance(error, DataError) for error in told.values())
    assert [line for body in place.bodies() for line in body.split()] == ["1", "3", "4"]
    with sink_task(HttpSinkTask, given, tolerates=False) as task, pytest.raises(DataError):
        task.put(records("t", "bad"))


def test_a_token_is_asked_for_and_again_when_it_is_refused(place: Place) -> None:
    login = {
        "oauth2_access_token_url": f"{place.base}/token", "oauth2_client_id": "me", "oauth2_client_secret": "word",
        "oauth2_client_scope": "all",
    }  # fmt: skip
    before = sum(each["path"] == "/token" for each in place.ask("/kept"))
    place.tell(wants=f"Bearer token-{before + 1}")
    with sink_task(HttpSinkTask, config(place, http_authorization_type="oauth2", **login)) as task:
        task.put(records("t", "1", "2"))
        place.tell(wants=f"Bearer token-{before + 2}")
        task.put(records("t", "3", first=2))
        place.tell(wants="nothing")
        with pytest.raises(Hopeless, match="refuses the login"):
            task.put(records("t", "4", first=3))
    asked = [each for each in place.ask("/kept") if each["path"] == "/token"][before:]
    assert asked[0]["body"] == "grant_type=client_credentials&scope=all"
    assert asked[0]["headers"]["Authorization"].startswith("Basic ")
    place.tell()
    given = config(place, http_authorization_type="oauth2", oauth2_client_authorization_mode="URL", **login)
    with sink_task(HttpSinkTask, given) as task:
        task.put(records("t", "5"))
    with sink_task(HttpSinkTask, config(place, http_authorization_type="apikey", **login)) as task:
        task.put(records("t", "6"))
    form, key = [each for each in place.ask("/kept") if each["path"] == "/token"][-2:]
    assert "client_secret=word" in form["body"]
    assert json.loads(key["body"]) == {"type": "api-key", "key": "me", "secret": "word"}
    place.tell(wants="Basic abc")
    given = config(place, http_authorization_type="static", http_headers_authorization="Basic abc")
    with sink_task(HttpSinkTask, given) as task:
        task.put(records("t", "7"))
    assert place.bodies()[-1] == "7"


def test_an_endpoint_that_is_away_is_waited_for(place: Place) -> None:
    place.url = "http://127.0.0.1:1/x"
    with sink_task(HttpSinkTask, config(place)) as task, pytest.raises(RetriableError):
        task.put(records("t", "1"))
    with sink_task(HttpSinkTask, {**config(place), "http.url": f"{place.base}/told-not"}) as task:
        task.put(records("t", "1"))


def test_a_source_asks_from_its_offset(place: Place) -> None:
    items = [{"id": number, "name": f"n{number}"} for number in (1, 2, 3)]
    place.tell(body={"data": {"items": items}})
    given = {
        "http.url": f"{place.url}?after=${{offset}}", "topic": "t", "poll.interval.ms": "10", "http.offset.initial": "0",
        "http.response.items": "$.data.items", "http.offset.field": "id", "http.key.field": "name",
    }  # fmt: skip
    with source_task(HttpSourceTask, given) as task:
        found = polled(task, 3)
        assert [(record.key, record.value["id"], record.source_offset) for record in found][-1] == (
            "n3",
            3,
            {"offset": 3},
        )
        assert found[0].source_offset == {"offset": 1}
        place.tell(body={"data": {"items": [*items, {"id": 7, "name": "x"}, {"no": 1}]}})
        assert polled(task, 1)[0].value["id"] == 7
        assert "no field id" in str(task.context.reported[0][1])
        place.tell(status=503, times=2, body={})
        until(lambda: not task.poll() and place.kept()[-1]["status"] == 200 and len(place.kept()) > 4)
    assert place.kept()[0]["path"].endswith("?after=0")
    assert place.kept()[-1]["path"].endswith("?after=7")
    place.tell(body=[{"id": 8}, {"id": 2}])
    resumed = [({"url": given["http.url"]}, {"offset": 7})]
    with source_task(HttpSourceTask, {**given, "http.response.items": ""}, resumed) as task:
        assert [record.value for record in polled(task, 1)] == [{"id": 8}]
    place.tell(status=404, times=1)
    with source_task(HttpSourceTask, given) as task, pytest.raises(ConnectError, match="404"):
        task.poll()


def test_mistakes_in_a_configuration_are_told() -> None:
    base = {"http.url": "http://h/x"}
    assert HttpSink.check(base) == {}
    assert set(HttpSink.check({"http.url": "ftp://x"})) == {"http.url"}
    assert set(HttpSink.check({**base, "http.authorization.type": "static"})) == {
        "http.headers.authorization"
    }
    assert set(HttpSink.check({**base, "http.headers.authorization": "x"})) == {"http.headers.authorization"}
    assert len(HttpSink.check({**base, "http.authorization.type": "oauth2"})) == 3
    assert set(HttpSink.check({**base, "http.headers.additional": "a:1,A:2"})) == {"http.headers.additional"}
    assert set(HttpSource.check({**base, "topic": "t", "http.headers.additional": "x"})) == {
        "http.headers.additional"
    }
    assert HttpSink.check({}) == {}
    with pytest.raises(ConnectError):
        HttpSource().alter_offsets(base, {"p": {"x": 1}})


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", {"a": [{"b": 1}]}),
        ("a", [{"b": 1}]),
        ("$.a[0].b", 1),
        ("a.0.b", 1),
        ("a[1]", None),
        ("x.y", None),
    ],
)
def test_paths_lead_into_an_answer(path: str, found: Any) -> None:
    assert at_path({"a": [{"b": 1}]}, path) == found
