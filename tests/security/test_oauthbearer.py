"""Clients come in with access tokens: signed ones of an identity provider, and unsecured ones where these are asked for."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.client.connection import BrokerConnection
from penstock.client.errors import AccessRefused
from penstock.client.security import security_of
from penstock.model.endpoints import Address
from penstock.security.bearer import first_message
from penstock.stack.certificates import Authority
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports, start_process
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from simulation.apache.java import QUIET_TOOL, TOOL_HEAP, java_command
from tests.clients.driver import WAIT_S, wait_until
from tests.identity_provider import AUDIENCE, ISSUER, IdentityProvider
from tests.security.sasl_talk import (
    AUTHENTICATION_FAILED,
    METADATA,
    SaslTalk,
    frame,
    refusal_at_start,
    sized,
)
from tests.security.secured_broker import SecuredBroker
from tests.security.test_cluster import established

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
REFUSED = b'{"status":"invalid_token"}'
REAUTH_MS = 1500
ILLEGAL_SASL_STATE = 34


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, provider: IdentityProvider
) -> Iterator[SecuredBroker]:
    options = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
        "sasl.oauthbearer.clock.skew.seconds": "2",
        "listener.name.login.oauthbearer.sasl.jaas.config": f"{MODULE} required;",
        "listener.name.login.oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.secure.oauthbearer.connections.max.reauth.ms": str(REAUTH_MS),
        "connection.failed.authentication.delay.ms": "20",
    }
    with SecuredBroker(tmp_path_factory.mktemp("oauth"), authority, **options) as broker:
        yield broker


def of_librdkafka(
    broker: SecuredBroker, token: Any, *, listener: str = "LOGIN", life_s: float = 60
) -> dict[str, Any]:
    """`token` makes one; librdkafka asks for the next when most of its life is over."""
    options = {
        "bootstrap.servers": broker.bootstrap(listener),
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "OAUTHBEARER",
        "oauth_cb": lambda _: (token(), time.time() + life_s),
        "log_level": "0",
    }
    if listener == "SECURE":
        options |= {"security.protocol": "sasl_ssl", "ssl.ca.location": str(broker.authority.path)}
    return options


def read(options: dict[str, Any], topic: str, count: int) -> list[bytes]:
    consumer = Consumer({**options, "group.id": f"readers-{topic}"})
    values: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        wait_until(
            lambda: (
                values.extend(m.value() for m in consumer.consume(200, 0.2) if not m.error())
                or len(values) >= count
            ),
            "all records",
        )
    finally:
        consumer.close()
    return values


def is_over(broker: SecuredBroker) -> bool:
    return "its login is over" in broker.log()


def test_a_client_with_tokens_logs_in_again_while_it_writes(
    broker: SecuredBroker, provider: IdentityProvider, topic_name: str
) -> None:
    """Over TLS, beside PLAIN and SCRAM; the listener wants a new login each REAUTH_MS, and ends connections without."""
    options = of_librdkafka(broker, provider.token, listener="SECURE")
    producer = Producer({**options, "acks": "all"})
    failures: list[object] = []
    end = time.monotonic() + 3 * REAUTH_MS / 1000
    count = 0
    while time.monotonic() < end:
        producer.produce(
            topic_name, str(count), on_delivery=lambda error, _: failures.append(error) if error else None
        )
        producer.poll(0.02)
        count += 1
    assert producer.flush(WAIT_S) == 0
    assert not failures
    assert read(options, topic_name, count) == [str(number).encode() for number in range(count)]
    assert not is_over(broker)


def java_properties(directory: Path, bootstrap: str, token_file: Path) -> Path:
    file = directory / "client.properties"
    file.write_text(
        f"bootstrap.servers={bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.login.callback.handler.class={HANDLER}\nsasl.oauthbearer.token.endpoint.url={token_file.as_uri()}\n"
        "sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer.FileJwtRetriever\n"
        f"sasl.jaas.config={MODULE} required;\nacks=all\n"
    )
    return file


def test_javas_client_logs_in_again_while_it_writes(
    tmp_path: Path, authority: Authority, provider: IdentityProvider
) -> None:
    token_file = tmp_path / "token.jwt"
    token_file.write_text(provider.token())
    options = {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "listener.name.login.oauthbearer.connections.max.reauth.ms": str(REAUTH_MS),
    }
    allowed = (
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token_file.as_uri()}",
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={token_file}",
    )
    with SecuredBroker(tmp_path / "broker", authority, **options) as broker:
        client = java_properties(tmp_path, broker.bootstrap("LOGIN"), token_file)
        command = java_command(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", "orders", "--num-records", "300", "--record-size", "10", "--throughput", "50"),
            *("--command-config", str(client)),
            jvm_options=(*TOOL_HEAP, *QUIET_TOOL, *allowed),
            quick=True,
        )
        tool = start_process(command, name="Java's producer", log_path=tmp_path / "java.log")
        try:
            wait_until(lambda: not tool.is_running, "the end of the producer")
        finally:
            tool.kill()
        said = (tmp_path / "java.log").read_text()
        assert "300 records sent" in said, said
        assert len(read(of_librdkafka(broker, provider.token), "orders", 300)) == 300
        assert not is_over(broker)


def test_a_token_that_ends_ends_the_session(broker: SecuredBroker, provider: IdentityProvider) -> None:
    """The client is told for how long it is good; what it asks for later closes the connection."""
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
        answer = talk.say(first_message(provider.token(exp=time.time() + 3)))
        assert (answer.code, answer.token) == (0, b"")
        assert 0 < answer.lifetime_ms <= 3000
        assert talk.is_served()
        wait_until(lambda: not talk.is_served(), "the end of the session")
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
        assert talk.say(first_message(provider.token(exp=time.time() + 2))).code == 0
        assert talk.shake("OAUTHBEARER") == 0  # in time
        assert talk.say(first_message(provider.token())).lifetime_ms > 500_000
        assert talk.is_served()


def test_nobody_becomes_somebody_else_by_another_token(
    broker: SecuredBroker, provider: IdentityProvider
) -> None:
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
        assert talk.say(first_message(provider.token("ana"))).code == 0
        assert talk.shake("OAUTHBEARER") == 0
        answer = talk.say(first_message(provider.token("eva")))
        assert answer.code == AUTHENTICATION_FAILED
        assert "Cannot change principals" in answer.message


def test_nobody_changes_the_mechanism(broker: SecuredBroker, provider: IdentityProvider) -> None:
    """Also not for one that would give the same name."""
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
        assert talk.say(first_message(provider.token("ana"))).code == 0
        assert talk.is_served()
        assert talk.shake("PLAIN") == ILLEGAL_SASL_STATE
        assert not talk.is_served()
    wait_until(
        lambda: "it was in by OAUTHBEARER, and would go on with PLAIN" in broker.log(), "a line about it"
    )


def none_of(provider: IdentityProvider) -> str:
    parts = [{"alg": "none", "kid": "first"}, provider.claims()]
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().strip("=") for part in parts)
        + "."
    )


REFUSALS = {
    "expired": lambda provider: provider.token(exp=time.time() - 60),
    "not valid yet": lambda provider: provider.token(nbf=time.time() + 600),
    "another audience": lambda provider: provider.token(aud="somebody"),
    "another issuer": lambda provider: provider.token(iss="https://elsewhere"),
    "no sub": lambda provider: provider.token(sub=None),
    "a key that is not known": lambda provider: provider.token(kid="no such key"),
    "algorithm": none_of,
    "no signed token": lambda provider: "a.b.c",
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_bad_token_is_refused_with_one_line_in_the_log(
    broker: SecuredBroker, provider: IdentityProvider, why: str
) -> None:
    token = REFUSALS[why](provider)
    before = len(broker.log())
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
        assert talk.say(first_message(token)).token == REFUSED
        answer = talk.say(b"\x01")
        assert (answer.code, answer.message.encode()) == (AUTHENTICATION_FAILED, REFUSED)
        assert not talk.is_served()
    lines = broker.log()[before:].splitlines()
    assert len(lines) == 1
    assert "a login from 127.0.0.1 failed: the token is refused: it" in lines[0]
    assert why in lines[0]
    assert token[:20] not in lines[0]


def test_a_flood_of_keys_that_nobody_has_causes_no_flood_of_fetches(
    broker: SecuredBroker, provider: IdentityProvider
) -> None:
    before = provider.fetches
    for number in range(30):
        with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
            assert talk.say(first_message(provider.token(kid=f"nobody-{number}"))).token == REFUSED
    assert provider.fetches - before <= 5


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,\x01auth=Bearer x.y.z\x01",
        b"n,,\x01auth=Basic c2VjcmV0\x01\x01",
        b"\xff\xfe",
        b"n,,\x01auth=Bearer " + b"x" * 100_000 + b"\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * 400_000 + b"\x01\x01",
        b"\x01",
    ],
    ids=["nothing", "half", "basic", "no text", "large", "very large", "heard nothing"],
)
def test_other_messages_are_refused(broker: SecuredBroker, first: bytes) -> None:
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
        answer = talk.say(first)
        assert answer.code == AUTHENTICATION_FAILED
        assert "invalid credentials with SASL mechanism OAUTHBEARER" in answer.message
        assert not talk.is_served()
    assert "c2VjcmV0" not in broker.log()


def test_messages_out_of_order_are_refused(broker: SecuredBroker, provider: IdentityProvider) -> None:
    good = first_message(provider.token())
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:  # two at once: the first is being checked
        talk.send(2 * frame(36, 1, sized(good)))
        assert {talk.answer().code, talk.answer().code} == {AUTHENTICATION_FAILED}
        assert not talk.is_served()
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:  # a second guess instead of having heard
        assert talk.say(first_message("a.b.c")).token == REFUSED
        assert talk.say(good).code == AUTHENTICATION_FAILED
        assert not talk.is_served()
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:  # before the login
        talk.send(METADATA)
        assert talk.receive() == b""
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
        assert talk.say(first_message("a.b.c")[:10]).code == AUTHENTICATION_FAILED


def test_tokens_of_old_clients_come_without_a_header(
    broker: SecuredBroker, provider: IdentityProvider
) -> None:
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER", version=0) as talk:
        talk.send(sized(first_message(provider.token())))
        assert talk.receive() == b""  # of no bytes: a frame that says yes
        assert talk.is_served()
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER", version=0) as talk:
        talk.send(sized(b"nonsense"))
        assert talk.receive() == b""
        assert not talk.is_served()


def of_ours(broker: SecuredBroker, provider: IdentityProvider, secret: str) -> BrokerConnection:
    security = security_of(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
            "sasl.jaas.config": f'{MODULE} required clientId="ana" clientSecret="{secret}";',
        }
    )
    address = Address("127.0.0.1", broker.ports["LOGIN"])
    return BrokerConnection(address, client_id="test", timeout_s=WAIT_S, security=security)


def test_our_client_gets_a_token_and_comes_in(broker: SecuredBroker, provider: IdentityProvider) -> None:
    connection = of_ours(broker, provider, "a-secret")
    connection.ask(MetadataRequest(topics=[]), MetadataResponse)
    connection.close()
    with pytest.raises(AccessRefused, match="gives no token: 401"):
        of_ours(broker, provider, "wrong")


def test_who_has_a_known_key_comes_in_while_the_provider_hangs(
    broker: SecuredBroker, provider: IdentityProvider
) -> None:
    with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
        assert talk.say(first_message(provider.token())).code == 0
    provider.may_answer.clear()
    try:
        with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as waiting:
            waiting.send(frame(36, 1, sized(first_message(provider.token(kid="unknown while it hangs")))))
            with SaslTalk(broker.ports["LOGIN"], "OAUTHBEARER") as talk:
                assert talk.say(first_message(provider.token())).code == 0
                assert talk.is_served()
            with SaslTalk(broker.ports["LOGIN"], "PLAIN") as talk:
                assert talk.say(b"\0bob\0bobs").code == 0
            assert waiting.answer().token == REFUSED
    finally:
        provider.may_answer.set()


def test_unsecured_tokens_come_in_where_they_are_asked_for(tmp_path: Path, authority: Authority) -> None:
    options = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.login.oauthbearer.sasl.jaas.config": f'{MODULE} required unsecuredValidatorPrincipalClaimName="sub";',
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
    }
    with SecuredBroker(tmp_path / "broker", authority, **options) as broker:
        assert broker.log().count("listener LOGIN takes tokens without a signature") == 1
        unsecured = {
            "bootstrap.servers": broker.bootstrap("LOGIN"),
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=ana scope=all",
            "log_level": "0",
        }
        AdminClient(unsecured).list_topics(timeout=WAIT_S)


def test_keys_in_a_file_are_taken(tmp_path: Path, authority: Authority, provider: IdentityProvider) -> None:
    file = tmp_path / "keys.json"
    file.write_text(provider.jwks())
    options = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": file.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    with SecuredBroker(tmp_path / "broker", authority, **options) as broker:
        AdminClient(of_librdkafka(broker, provider.token)).list_topics(timeout=WAIT_S)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({}, "sasl.oauthbearer.jwks.endpoint.url: must be given for OAUTHBEARER"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ldap://keys"}, "must begin with https://"),
        (
            {"sasl.oauthbearer.jwks.endpoint.url": "file:///no/such/keys"},
            "cannot read /no/such/keys: No such file",
        ),
        ({"principal.builder.class": "com.example.Mine"}, "for configuration principal.builder.class"),
        (
            {"sasl.enabled.mechanisms": "DIGEST-MD5"},
            "sasl.enabled.mechanisms: DIGEST-MD5 is not known, only PLAIN",
        ),
    ],
)
def test_a_listener_that_cannot_check_tokens_is_not_opened(
    tmp_path: Path, properties: dict[str, str], says: str
) -> None:
    assert says in refusal_at_start(tmp_path, {"sasl.enabled.mechanisms": "OAUTHBEARER", **properties})


def test_a_broker_without_the_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, provider: IdentityProvider
) -> None:
    from penstock.broker.access import bearer_login

    monkeypatch.setattr(bearer_login, "has_library", lambda: False)
    node: Any = None
    given = {"sasl.oauthbearer.jwks.endpoint.url": provider.keys_url}
    with pytest.raises(ValueError, match=r"pip install 'penstock\[oauth\]'"):
        bearer_login.BearerLogins(node).of_listener("LOGIN", given, int, None)


def of_brokers(provider: IdentityProvider, port: int, secret: str) -> dict[str, str]:
    return {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
            f'{MODULE} required clientId="broker" clientSecret="{secret}";'
        ),
    }


def test_brokers_log_in_at_one_another_with_tokens(tmp_path: Path, provider: IdentityProvider) -> None:
    """Two know the secret, by which they get a token. The third does not, and says so."""
    ports = free_ports(3)
    secrets = dict(enumerate(["b-secret", "b-secret", "wr0ng-secret"], start=1))
    options_of = {
        number: of_brokers(provider, port, secrets[number]) for number, port in enumerate(ports, start=1)
    }
    with PenstockCluster(tmp_path, ports=ports, options_of=options_of, session_timeout_ms=3_000) as cluster:
        if "broker 3 is the controller" in cluster.log_text(3):  # which could tell the others nothing
            cluster.stop(3)
            cluster.start(3)
        options = {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "OAUTHBEARER",
            "oauth_cb": lambda _: (provider.token(), time.time() + 60),
            "log_level": "0",
        }
        admin = AdminClient(options)
        admin.create_topics([NewTopic("orders", 1, replica_assignment=[[1, 2]])])["orders"].result(WAIT_S)
        producer = Producer({**options, "acks": "all"})
        producer.produce("orders", "v", partition=0)
        assert producer.flush(WAIT_S) == 0

        def is_in_sync() -> bool:
            return len(admin.list_topics("orders", timeout=WAIT_S).topics["orders"].partitions[0].isrs) == 2

        wait_until(is_in_sync, "both replicas in sync")
        admin.create_topics([NewTopic("others", 1, replica_assignment=[[1, 3]])])
        wait_until(
            lambda: any(
                "there is no token for our login as broker" in cluster.log_text(n) for n in range(1, 4)
            ),
            "the reason in the log",
        )
        for number in range(1, 4):
            text = cluster.log_text(number)
            assert "Traceback" not in text
            assert not any(secret in text for secret in secrets.values())


def test_brokers_get_new_tokens_for_one_another_before_the_old_ones_end(tmp_path: Path) -> None:
    """Their tokens last for three seconds, and those of clients for longer."""
    ports = free_ports(2)
    with IdentityProvider() as provider:
        provider.lifetime_s = 3
        options_of = {
            number: of_brokers(provider, port, "b-secret") for number, port in enumerate(ports, start=1)
        }
        with PenstockCluster(
            tmp_path, ports=ports, options_of=options_of, session_timeout_ms=6_000
        ) as cluster:
            options = {
                "bootstrap.servers": cluster.bootstrap,
                "security.protocol": "sasl_plaintext",
                "sasl.mechanisms": "OAUTHBEARER",
                "oauth_cb": lambda _: (provider.token(exp=time.time() + 600), time.time() + 600),
                "log_level": "0",
            }
            admin = AdminClient(options)
            topic = NewTopic("orders", 2, replica_assignment=[[1, 2], [2, 1]])
            admin.create_topics([topic])["orders"].result(WAIT_S)
            failures: list[object] = []
            producer = Producer(
                {**options, "acks": "all", "on_delivery": lambda error, _: error and failures.append(error)}
            )
            seen: set[tuple[str, str]] = set()

            def has_renewed_often() -> bool:
                for partition in (0, 1):
                    producer.produce("orders", "v", partition=partition)
                assert producer.flush(WAIT_S) == 0
                seen.update(established(ports))
                return all(len([1 for _, port in seen if port == f"{each:04X}"]) >= 6 for each in ports)

            wait_until(has_renewed_often, "new connections between the brokers")
            assert not failures
            for number in cluster.broker_ids:
                text = cluster.log_text(number)
                assert "its login is over" not in text
                assert "Traceback" not in text
