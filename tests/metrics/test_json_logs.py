"""Services log as JSON where they are told so: by an option, or by the environment."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.web.services import WebProcess


def lines_of(service: WebProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in service.log.splitlines() if not line.startswith("penstock ")]


@pytest.mark.parametrize("told_by", ["option", "environment"])
def test_each_line_of_a_service_is_an_object(
    broker: PenstockBroker, tmp_path: Path, told_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "registry.properties"
    file.write_text(
        f"listeners=http://127.0.0.1:0\nkafkastore.topic=_json-{told_by}\nschema.registry.group.id={tmp_path.name}\n"
        "metrics.jmx.prefix=x\nnobody.knows.this=1\n"
    )
    words = [sys.executable, "-m", "penstock", "registry", "-b", broker.bootstrap, "--config", str(file)]
    if told_by == "option":
        words += ["--log-format", "json"]
    else:
        monkeypatch.setenv("PENSTOCK_LOG_FORMAT", "json")
    service = WebProcess(words, tmp_path / "registry.log", name="registry")
    service.ask("GET", "/subjects", headers={"X-Request-Id": "mine"})
    assert service.close() == 0
    lines = lines_of(service)
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    (asked,) = [line for line in lines if line.get("request_id") == "mine"]
    assert (asked["logger"], asked["method"], asked["target"], asked["status"]) == (
        "penstock.access", "GET", "/subjects", 200,
    )  # fmt: skip
