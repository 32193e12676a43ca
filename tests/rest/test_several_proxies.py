"""Two proxies that know one another, and a client that asks the wrong one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_ports
from tests.conftest import MakeTopic
from tests.rest.proxies import JSON, Instance, RestProxy


@pytest.fixture
def pair(broker: PenstockBroker, tmp_path: Path) -> Iterator[tuple[RestProxy, RestProxy]]:
    ports = free_ports(2)
    peers = ",".join(f"p{number}=http://127.0.0.1:{port}" for number, port in enumerate(ports))
    started = []
    try:
        for number, port in enumerate(ports):
            properties = {
                "listeners": f"http://127.0.0.1:{port}",
                "id": f"p{number}",
                "penstock.rest.peers": f"{peers},gone=http://127.0.0.1:1",
            }
            started.append(RestProxy(tmp_path / str(number), broker.bootstrap, properties))
        yield started[0], started[1]
    finally:
        for proxy in started:
            assert proxy.close() == 0
            assert "Traceback" not in proxy.log, proxy.log


@pytest.mark.parametrize("name", [None, "mine"])
def test_a_request_goes_on_to_where_the_instance_lives(
    pair: tuple[RestProxy, RestProxy], make_topic: MakeTopic, name: str | None
) -> None:
    here, there = pair
    topic = make_topic()
    here.produce(topic, {"a": 1}, {"a": 2})
    settings = {"format": "json", "auto.offset.reset": "earliest", **({"name": name} if name else {})}
    made = there.post(f"/consumers/{topic}", settings).json()
    assert made["base_uri"].startswith(there.url)
    assert name or made["instance_id"].startswith("rest-consumer-p1-")
    instance = Instance(here, made)
    instance.subscribe(topic)
    read = instance.get("records", Accept=JSON)
    assert [one["value"] for one in read.json()] == [{"a": 1}, {"a": 2}]
    assert read.headers["content-type"] == JSON
    assert instance.post("offsets", b"").status == 200
    (told,) = instance.get(f"offsets?partition={topic}:0").json()["offsets"]
    assert told["offset"] == 2
    assert instance.post("positions", b"nonsense").status == 400
    assert instance.delete().status == 204
    missing = instance.get("subscription")
    assert (missing.status, missing.json()["error_code"]) == (404, 40403)
