"""A cluster that takes access tokens, and a proxy that passes on those of its callers, to the brokers and to a registry."""

import json
import time
from collections.abc import Iterator

import pytest

from penstock.admin import Cluster
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import BROKER_OPTIONS
from tests.identity_provider import AUDIENCE, ISSUER, IdentityProvider
from tests.rest.proxies import JSON, TIMEOUT_S, V2, RestProxy
from tests.web.services import Reply, WebProcess, registry_service

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
AVRO = "application/vnd.kafka.avro.v2+json"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


@pytest.fixture(scope="module")
def guarded(provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    options = {
        **BROKER_OPTIONS,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    login = {
        "oauthbearer.sasl.jaas.config": f"{MODULE};",
        "oauthbearer.sasl.server.callback.handler.class": HANDLER,
    }
    directory = tmp_path_factory.mktemp("guarded")
    with PenstockBroker(directory, options=options, listeners={"SASL_PLAINTEXT": login}) as broker:
        with Cluster(broker.bootstrap) as cluster:
            cluster.topics.create("open")
            cluster.acls.add("User:ana", ["Read", "Write", "Describe"], name="open")
            cluster.acls.add("User:ana", ["Read"], resource_type="group", name="g")
            cluster.acls.add("User:bob", ["Describe"], name="open")
        yield broker


@pytest.fixture(scope="module")
def registry(
    guarded: PenstockBroker, provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebProcess]:
    rules = tmp_path_factory.mktemp("rules") / "rules"
    rules.write_text("allow User:ana All any\n")
    options = {
        "authentication.method": "BEARER",
        "oauthbearer.jwks.endpoint.url": provider.keys_url,
        "penstock.subject.acls.file": str(rules),
    }
    running = registry_service(tmp_path_factory.mktemp("registry"), options, guarded.bootstrap)
    yield running
    assert running.close() == 0


@pytest.fixture(scope="module")
def passing(
    guarded: PenstockBroker, registry: WebProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestProxy]:
    proxy = RestProxy(
        tmp_path_factory.mktemp("rest"),
        guarded.address("SASL_PLAINTEXT"),
        {
            "confluent.rest.auth.propagate.method": "BEARER",
            "client.security.protocol": "SASL_PLAINTEXT",
            "schema.registry.url": registry.url,
        },
    )
    yield proxy
    assert proxy.close() == 0
    assert "Traceback" not in proxy.log, proxy.log
    assert "eyJ" not in proxy.log  # as every token begins


def ask(
    proxy: RestProxy, token: str, method: str, path: str, body: object = None, content: str = V2
) -> Reply:
    headers = {
        "Authorization": f"Bearer {token}",
        **({"Content-Type": content} if body is not None else {}),
    }
    return proxy.ask(method, path, body, headers)


def outcome(reply: Reply) -> tuple[int, int]:
    return reply.status, reply.json()["error_code"]


def test_nobody_comes_in_without_a_token_that_the_broker_takes(
    passing: RestProxy, provider: IdentityProvider
) -> None:
    missing = passing.get("/topics")
    assert outcome(missing) == (401, 40101)
    assert missing.headers["www-authenticate"] == 'Bearer realm="penstock"'
    with IdentityProvider() as others:
        strange = others.token()
    for token in (provider.token(iss="else"), provider.token(exp=time.time() - 60), strange, "opaque"):
        refused = ask(passing, token, "GET", "/topics")
        assert outcome(refused) == (401, 40101), refused.body
        assert refused.headers["www-authenticate"] == 'Bearer realm="penstock"'
    for header in ("Basic YTpi", "Bearer", "Bearer a b", "Bearer " + "A" * 20_000):
        assert outcome(passing.get("/topics", Authorization=header)) == (401, 40101)


def test_each_caller_acts_as_the_name_in_its_token(passing: RestProxy, provider: IdentityProvider) -> None:
    record = {"records": [{"value": 1}]}
    assert ask(passing, provider.token("ana"), "GET", "/topics").json() == ["open"]
    written = ask(passing, provider.token("ana"), "POST", "/topics/open", record, JSON).json()["offsets"]
    assert written[0]["error_code"] is None
    refused = ask(passing, provider.token("bob"), "POST", "/topics/open", record, JSON).json()["offsets"]
    assert refused[0]["error_code"] == 40301, refused


def test_a_token_is_good_until_it_ends(passing: RestProxy, provider: IdentityProvider) -> None:
    token = provider.token("ana", exp=time.time() + 3)
    deadline = time.monotonic() + TIMEOUT_S
    first = ask(passing, token, "GET", "/topics")
    if first.status == 200:  # a machine that is busy for three seconds has nothing to say here
        assert first.json() == ["open"]
    while ask(passing, token, "GET", "/topics").status == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert outcome(ask(passing, token, "GET", "/topics")) == (401, 40101)


def test_a_consumer_instance_is_found_with_the_next_token_too(
    passing: RestProxy, provider: IdentityProvider
) -> None:
    record = {"records": [{"value": 1}]}
    ask(passing, provider.token("ana"), "POST", "/topics/open", record, JSON)
    settings = {"format": "json", "auto.offset.reset": "earliest"}
    name = ask(passing, provider.token("ana"), "POST", "/consumers/g", settings).json()["instance_id"]
    path = f"/consumers/g/instances/{name}"
    later = provider.token("ana", iat=time.time())
    assert ask(passing, later, "POST", f"{path}/subscription", {"topics": ["open"]}).status == 204
    assert len(ask(passing, later, "GET", f"{path}/records").json()) > 0
    assert outcome(ask(passing, provider.token("bob"), "GET", f"{path}/records")) == (404, 40403)
    assert ask(passing, later, "DELETE", path).status == 204


def test_the_registry_gets_the_token_too(passing: RestProxy, provider: IdentityProvider) -> None:
    body = {"value_schema": json.dumps("string"), "records": [{"value": "tea"}]}
    written = ask(passing, provider.token("ana"), "POST", "/topics/open", body, AVRO)
    assert written.status == 200, written.body
    body["value_schema_id"] = written.json()["value_schema_id"]
    del body["value_schema"]
    refused = ask(passing, provider.token("bob"), "POST", "/topics/open", body, AVRO)
    assert outcome(refused) == (403, 40301)
