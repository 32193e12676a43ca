"""A cluster that asks for a login, and a proxy that passes on those of its callers."""

import base64
from collections.abc import Iterator

import pytest

from penstock.admin import Cluster
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import BROKER_OPTIONS
from tests.rest.proxies import JSON, TIMEOUT_S, V2, RestProxy
from tests.web.services import Reply

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = {"admin": "a-secret", "ana": 'p:ä"ss', "bob": "b-secret"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    names = " ".join('user_{}="{}"'.format(name, word.replace('"', '\\"')) for name, word in USERS.items())
    options = {
        **BROKER_OPTIONS,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin;User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    listeners = {"SASL_PLAINTEXT": {"plain.sasl.jaas.config": f"{PLAIN} {names};"}}
    with PenstockBroker(tmp_path_factory.mktemp("guarded"), options=options, listeners=listeners) as broker:
        with Cluster(broker.bootstrap) as cluster:
            for name in ("open", "closed"):
                cluster.topics.create(name)
            cluster.acls.add("User:ana", ["Read", "Write", "Describe"], name="open")
            cluster.acls.add("User:ana", ["Read"], resource_type="group", name="g")
            cluster.acls.add("User:bob", ["Describe"], name="open")
        yield broker


@pytest.fixture(scope="module")
def passing(guarded: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestProxy]:
    proxy = RestProxy(
        tmp_path_factory.mktemp("rest"),
        guarded.address("SASL_PLAINTEXT"),
        {"confluent.rest.auth.propagate.method": "JETTY_AUTH", "penstock.rest.login.limit": "2"},
        command_config={"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
    )
    yield proxy
    assert proxy.close() == 0
    assert "Traceback" not in proxy.log, proxy.log
    assert not any(word in proxy.log for word in USERS.values())


def ask(
    proxy: RestProxy, user: str, method: str, path: str, body: object = None, content: str = V2,
    *, password: str | None = None,
) -> Reply:  # fmt: skip
    login = base64.b64encode(f"{user}:{USERS.get(user) if password is None else password}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", **({"Content-Type": content} if body is not None else {})}
    return proxy.ask(method, path, body, headers)


def outcome(reply: Reply) -> tuple[int, int]:
    return reply.status, reply.json()["error_code"]


def test_nobody_comes_in_without_a_login_that_the_broker_takes(passing: RestProxy) -> None:
    missing = passing.get("/topics")
    assert outcome(missing) == (401, 40101)
    assert missing.headers["www-authenticate"] == 'Basic realm="penstock"'
    assert outcome(ask(passing, "ana", "GET", "/topics", password="wrong")) == (401, 40101)
    assert outcome(ask(passing, "carol", "GET", "/topics", password="x")) == (401, 40101)
    assert outcome(ask(passing, "", "GET", "/topics", password="x")) == (401, 40101)
    for header in ("Basic", "Basic !!", "Bearer x", "Basic " + "A" * 10000):
        assert outcome(passing.get("/topics", Authorization=header)) == (401, 40101)
    assert passing.get("/health").json() == {"status": "UP"}


def test_each_caller_sees_what_it_may_see(passing: RestProxy) -> None:
    assert ask(passing, "ana", "GET", "/topics").json() == ["open"]
    assert ask(passing, "bob", "GET", "/topics").json() == ["open"]
    assert {"open", "closed"} <= set(ask(passing, "admin", "GET", "/topics").json())


def test_records_are_written_as_who_sent_them(passing: RestProxy) -> None:
    record = {"records": [{"value": 1}]}
    (written,) = ask(passing, "ana", "POST", "/topics/open", record, JSON).json()["offsets"]
    assert written["error_code"] is None
    answer = ask(passing, "bob", "POST", "/topics/open", record, JSON)
    assert answer.status == 200
    assert answer.json()["offsets"][0]["error_code"] == 40301
    assert outcome(ask(passing, "bob", "POST", "/topics/closed", record, JSON)) in (
        (403, 40301),
        (404, 40401),
    )
    (cluster,) = ask(passing, "admin", "GET", "/v3/clusters").json()["data"]
    at = f"/v3/clusters/{cluster['cluster_id']}"
    one = {"value": {"type": "JSON", "data": 1}}
    records = f"{at}/topics/open/records"
    assert ask(passing, "ana", "POST", records, one, "application/json").json()["error_code"] == 200
    assert ask(passing, "bob", "POST", records, one, "application/json").json()["error_code"] == 40301


def test_administration_is_refused_to_who_may_not(passing: RestProxy) -> None:
    (cluster,) = ask(passing, "admin", "GET", "/v3/clusters").json()["data"]
    at = f"/v3/clusters/{cluster['cluster_id']}"
    topic = {"topic_name": "made"}
    assert outcome(ask(passing, "bob", "POST", f"{at}/topics", topic, "application/json")) == (403, 40301)
    assert outcome(ask(passing, "bob", "DELETE", f"{at}/topics/open")) == (403, 40301)
    assert outcome(ask(passing, "bob", "GET", f"{at}/acls")) == (403, 40301)
    assert ask(passing, "admin", "POST", f"{at}/topics", topic, "application/json").status == 201


def test_access_rules_are_searched_added_and_removed(passing: RestProxy) -> None:
    (cluster,) = ask(passing, "admin", "GET", "/v3/clusters").json()["data"]
    at = f"/v3/clusters/{cluster['cluster_id']}/acls"
    rule = {
        "resource_type": "TOPIC", "resource_name": "team-", "pattern_type": "PREFIXED", "principal": "User:eve",
        "host": "*", "operation": "READ", "permission": "ALLOW",
    }  # fmt: skip
    made = ask(passing, "admin", "POST", at, rule, "application/json")
    assert made.status == 201
    batch = {"data": [{**rule, "operation": "WRITE"}, {**rule, "operation": "DESCRIBE"}]}
    assert ask(passing, "admin", "POST", f"{at}:batch", batch, "application/json").status == 201
    found = ask(passing, "admin", "GET", f"{at}?principal=User:eve").json()
    assert [one["operation"] for one in found["data"]] == ["READ", "WRITE", "DESCRIBE"]
    assert rule.items() <= found["data"][0].items()
    assert found["data"][0]["kind"] == "KafkaAcl"
    everything = "resource_type=TOPIC&pattern_type=ANY&operation=ANY&permission=ANY&principal=User:eve"
    assert outcome(ask(passing, "admin", "DELETE", f"{at}?principal=User:eve")) == (400, 400)
    gone = ask(passing, "admin", "DELETE", f"{at}?{everything}").json()["data"]
    assert sorted(one["operation"] for one in gone) == ["DESCRIBE", "READ", "WRITE"]
    assert ask(passing, "admin", "GET", f"{at}?principal=User:eve").json()["data"] == []
    for wrong, code in (
        ({"operation": "DANCE"}, 400),
        ({"resource_name": None}, 422),
        ({"principal": "eve"}, 40002),
    ):
        answer = ask(passing, "admin", "POST", at, {**rule, **wrong}, "application/json")
        assert answer.json()["error_code"] == code


def test_a_consumer_instance_is_of_who_made_it(passing: RestProxy) -> None:
    record = {"records": [{"value": 1}]}
    ask(passing, "ana", "POST", "/topics/open", record, JSON)
    settings = {"format": "json", "auto.offset.reset": "earliest"}
    name = ask(passing, "ana", "POST", "/consumers/g", settings).json()["instance_id"]
    path = f"/consumers/g/instances/{name}"
    assert ask(passing, "ana", "POST", f"{path}/subscription", {"topics": ["open"]}).status == 204
    assert len(ask(passing, "ana", "GET", f"{path}/records").json()) > 0
    assert outcome(ask(passing, "bob", "GET", f"{path}/records")) == (404, 40403)
    assert ask(passing, "ana", "DELETE", path).status == 204
    name = ask(passing, "bob", "POST", "/consumers/g", settings).json()["instance_id"]
    path = f"/consumers/g/instances/{name}"
    ask(passing, "bob", "POST", f"{path}/subscription", {"topics": ["open"]})
    assert outcome(ask(passing, "bob", "GET", f"{path}/records?timeout={int(TIMEOUT_S * 1000)}")) == (
        403,
        40301,
    )
    assert ask(passing, "bob", "DELETE", path).status == 204


def test_a_proxy_has_a_login_of_its_own_where_it_passes_none_on(
    guarded: PenstockBroker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    login = f'{PLAIN} username="admin" password="{USERS["admin"]}";'
    proxy = RestProxy(
        tmp_path_factory.mktemp("rest"),
        guarded.address("SASL_PLAINTEXT"),
        {
            "client.security.protocol": "SASL_PLAINTEXT",
            "client.sasl.mechanism": "PLAIN",
            "client.sasl.jaas.config": login,
        },
    )
    try:
        assert {"open", "closed"} <= set(proxy.get("/topics").json())
        assert proxy.produce("closed", 1).json()["offsets"][0]["error_code"] is None
        instance = proxy.instance("any")
        instance.subscribe("closed")
        assert instance.values_until(1) == [1]
    finally:
        assert proxy.close() == 0
