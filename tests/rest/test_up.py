"""The REST proxy as a service of `penstock up`."""

import base64
import json
import ssl
import urllib.request
from pathlib import Path

import pytest

from penstock.client.property_files import read_properties
from penstock.security.jaas import parse_login
from tests.cli.boxes import TestBox
from tests.cli.conftest import TIMEOUT_S
from tests.rest.proxies import JSON


@pytest.mark.parametrize("secure", [False, True])
def test_up_starts_it_when_it_is_asked_for(tmp_path: Path, secure: bool) -> None:
    box = TestBox(tmp_path / "box")
    try:
        words = ["--secure"] if secure else []
        started = box.up_anew("--with", "rest", "--rest-port", "0", *words)
        assert started.code == 0, started.err
        assert started.err.index("broker-1 is up") < started.err.index("rest is up")
        found = next(each for each in box.status()["services"] if each["name"] == "rest")
        assert found["healthy"]
        url, context, headers = f"http://127.0.0.1:{found['port']}", None, {}
        if secure:
            context = ssl.create_default_context(cafile=str(box.directory / "security" / "ca.pem"))
            login = parse_login(read_properties(str(box.directory / "client.properties"))["sasl.jaas.config"])
            pair = f"{login.options['username']}:{login.options['password']}"
            headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
            url = url.replace("http", "https")
        request = urllib.request.Request(
            f"{url}/topics/orders",
            data=b'{"records": [{"value": 1}]}',
            headers={"Content-Type": JSON, **headers},
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
            assert json.load(answer)["offsets"][0]["offset"] == 0
        stopped = box.run("down")
        assert stopped.code == 0, stopped.err
        assert stopped.err.index("rest has stopped") < stopped.err.index("broker-1 has stopped")
    finally:
        box.close()
