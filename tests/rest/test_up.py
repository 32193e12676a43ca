"""The REST proxy as a service of `penstock up`."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from penstock.admin import Cluster
from penstock.client.property_files import read_properties
from penstock.security.jaas import parse_login
from tests.cli.boxes import TestBox
from tests.cli.conftest import TIMEOUT_S
from tests.rest.proxies import JSON

AVRO = "application/vnd.kafka.avro.v2+json"


class Asking:
    """The proxy of a box, asked by whoever has a login."""

    def __init__(self, box: TestBox, *, secure: bool) -> None:
        found = next(each for each in box.status()["services"] if each["name"] == "rest")
        assert found["healthy"]
        self._context = None
        self.login = ""
        if secure:
            self._context = ssl.create_default_context(cafile=str(box.directory / "security" / "ca.pem"))
            given = parse_login(read_properties(str(box.directory / "client.properties"))["sasl.jaas.config"])
            self.login = f"{given.options['username']}:{given.options['password']}"
        self._url = f"{'https' if secure else 'http'}://127.0.0.1:{found['port']}"

    def post(self, path: str, body: object, content: str, *, login: str | None = None) -> tuple[int, Any]:
        pair = base64.b64encode((login or self.login).encode()).decode()
        headers = {"Content-Type": content, **({"Authorization": f"Basic {pair}"} if self.login else {})}
        request = urllib.request.Request(
            f"{self._url}{path}", data=json.dumps(body).encode(), headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._context) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@pytest.mark.parametrize("secure", [False, True])
def test_up_starts_it_when_it_is_asked_for(tmp_path: Path, secure: bool) -> None:
    box = TestBox(tmp_path / "box")
    try:
        words = ["--secure"] if secure else []
        more = ["--with", "registry", "--registry-port", "0"]
        started = box.up_anew("--with", "rest", "--rest-port", "0", *more, *words)
        assert started.code == 0, started.err
        assert started.err.index("broker-1 is up") < started.err.index("rest is up")
        proxy = Asking(box, secure=secure)
        status, told = proxy.post("/topics/orders", {"records": [{"value": 1}]}, JSON)
        assert (status, told["offsets"][0]["offset"]) == (200, 0)
        typed = {"value_schema": '"string"', "records": [{"value": "tea"}]}
        status, told = proxy.post("/topics/orders", typed, AVRO)
        assert (status, told["value_schema_id"]) == (200, 1), told
        if secure:
            check_that_callers_are_themselves_at_the_registry(box, proxy, typed)
        stopped = box.run("down")
        assert stopped.code == 0, stopped.err
        assert stopped.err.index("rest has stopped") < stopped.err.index("broker-1 has stopped")
    finally:
        box.close()


def check_that_callers_are_themselves_at_the_registry(
    box: TestBox, proxy: Asking, typed: dict[str, Any]
) -> None:
    """The admin has just used that schema: what it may see is not kept for others."""
    with Cluster(box.bootstrap, read_properties(str(box.directory / "client.properties"))) as cluster:
        cluster.users.set("ana", "a-secret")
        cluster.acls.add("User:ana", ["Write", "Describe"], name="orders")
    status, told = proxy.post("/topics/orders", {"records": [{"value": 2}]}, JSON, login="ana:a-secret")
    assert (status, told["offsets"][0]["error_code"]) == (200, None)
    for body in (
        typed,
        {**typed, "value_schema": '"int"'},
        {"value_schema_id": 1, "records": [{"value": "x"}]},
    ):
        status, told = proxy.post("/topics/orders", body, AVRO, login="ana:a-secret")
        assert (status, told["error_code"]) == (403, 40301), told
