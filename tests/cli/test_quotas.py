"""penstock quotas, and `cluster.quotas`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from penstock.admin import Cluster
from penstock.admin.quotas import QuotasOf
from penstock.client.errors import UserError
from penstock.testing.penstock_broker import PenstockBroker

Verb = Callable[..., Any]


def test_quotas_are_set_listed_and_removed(penstock: Verb) -> None:
    done = penstock(
        "quotas",
        "set",
        "--user",
        "eva",
        "--client",
        "app",
        "producer_byte_rate=5MB",
        "request_percentage=12.5%",
    )
    assert done == (
        "",
        "✓ user eva, client id app may take producer_byte_rate=5000000, request_percentage=12.5\n",
        0,
    )
    penstock("quotas", "set", "--user", "eva", "--client-default", "consumer_byte_rate=512KiB")
    penstock("quotas", "set", "--ip", "10.1.1.1", "connection_creation_rate=3")
    found = json.loads(penstock("quotas", "list", "-o", "json").out)
    of_eva = [each for each in found if each["user"] == "eva"]
    assert of_eva == [
        {
            "user": "eva",
            "client_id": "<default>",
            "ip": None,
            "quota": "consumer_byte_rate",
            "value": 524288.0,
        },
        {"user": "eva", "client_id": "app", "ip": None, "quota": "producer_byte_rate", "value": 5000000.0},
        {"user": "eva", "client_id": "app", "ip": None, "quota": "request_percentage", "value": 12.5},
    ]
    table = penstock("quotas", "list").out
    assert "5,000,000" in table
    assert "10.1.1.1" in table
    assert penstock("quotas", "remove", "--user", "eva", "--client", "app", "request_percentage").code == 0
    assert penstock("quotas", "remove", "--user", "eva", "--client", "app").code == 0
    assert penstock("quotas", "remove", "--user", "eva", "--client-default").code == 0
    assert penstock("quotas", "remove", "--ip", "10.1.1.1").code == 0
    again = penstock("quotas", "remove", "--ip", "10.1.1.1")
    assert (again.out, again.code) == ("", 1)
    assert "there is no such quota" in again.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["set", "producer_byte_rate=5"], "say whose quota it is"),
        (["set", "--user", "a", "producer_byte_rate"], "must be written as name=value"),
        (["set", "--user", "a", "producer_byte_rate=5XB"], "not a number such as"),
        (["set", "--user", "a", "speed=5"], "speed is no quota of users and client ids"),
        (
            ["set", "--ip", "10.0.0.1", "producer_byte_rate=5"],
            "producer_byte_rate is no quota of an IP address",
        ),
        (["set", "--user", "a", "--ip", "10.0.0.1", "connection_creation_rate=5"], "holds for all users"),
        (["set", "--user", "a", "--user-default", "producer_byte_rate=5"], "exclude each other"),
        (["set", "--user", "a", "producer_byte_rate=0"], "must be greater than 0"),
    ],
)
def test_what_cannot_be_is_one_line(penstock: Verb, words: list[str], reason: str) -> None:
    done = penstock("quotas", *words)
    assert reason in done.err
    assert done.err.count("\n") == 1
    assert (done.out, done.code) == ("", 1)


def test_python_programs_set_quotas(broker: PenstockBroker) -> None:
    with Cluster(broker.bootstrap) as cluster:
        cluster.quotas.set({"producer_byte_rate": 7e9}, client_id=cluster.quotas.DEFAULT)
        assert QuotasOf(None, "<default>", None, {"producer_byte_rate": 7e9}) in cluster.quotas.list()
        cluster.quotas.remove(client_id=cluster.quotas.DEFAULT)
        with pytest.raises(UserError, match="no such quota"):
            cluster.quotas.remove(["producer_byte_rate"], client_id=cluster.quotas.DEFAULT)
