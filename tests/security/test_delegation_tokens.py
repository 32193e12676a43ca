"""Delegation tokens: made by people who have logged in, and good for logins of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock.arrow
from penstock.admin.cluster import Cluster
from penstock.admin.facets.configs import ConfigResource
from penstock.admin.tokens import Token
from penstock.client.errors import AccessRefused, Refused
from penstock.model.errors import ErrorCode
from penstock.stack.certificates import Authority
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports
from penstock.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.cli.conftest import run_command
from tests.clients.driver import wait_until
from tests.security.secured_broker import SecuredBroker
from tests.security.test_cluster import listener_options
from tests.security.token_login import connected, lets_in, token_login

KEY = "the-key-of-all-brokers"
DAY_MS, WEEK_MS = 86_400_000, 604_800_000
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[SecuredBroker]:
    options = {"delegation.token.master.key": KEY, "connections.max.reauth.ms": "3600000"}
    with SecuredBroker(tmp_path_factory.mktemp("tokens"), authority, **options) as running:
        yield running
        assert KEY not in running.log()


def cluster_of(bootstrap: str, user: str, password: str) -> Cluster:
    return Cluster(
        bootstrap,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        },
    )


@pytest.fixture
def ana(broker: SecuredBroker) -> Iterator[Cluster]:
    with cluster_of(broker.bootstrap("LOGIN"), "ana", 'p "a\\ss') as cluster:
        yield cluster


@pytest.fixture
def bob(broker: SecuredBroker) -> Iterator[Cluster]:
    with cluster_of(broker.bootstrap("LOGIN"), "bob", "bobs") as cluster:
        yield cluster


def code_of(failure: pytest.ExceptionInfo[Refused]) -> int:
    return failure.value.code


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_whoever_has_a_token_logs_in_as_its_owner(
    broker: SecuredBroker, ana: Cluster, mechanism: str
) -> None:
    token = ana.tokens.create(max_lifetime_ms=60_000)
    with connected(broker.bootstrap("LOGIN")) as connection:
        answer = token_login(connection, mechanism, token.token_id, token.hmac)
        assert answer.error_code == 0
        assert 0 < answer.session_lifetime_ms <= 60_000, "not longer than the token is good"
        assert connection.ask(MetadataRequest(topics=[]), MetadataResponse).brokers
        # Who it is shows where tokens are made: with a token none is.
        made = connection.ask(CreateDelegationTokenRequest(), CreateDelegationTokenResponse)
        assert made.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert made.principal_name == "ana"
        seen = connection.ask(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse)
        assert seen.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert token.hmac not in broker.log()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_our_client_logs_in_with_a_token(
    broker: SecuredBroker, ana: Cluster, tmp_path: Path, mechanism: str
) -> None:
    """Commands and tables, which do not use librdkafka; what does says that it cannot."""
    token = ana.tokens.create(max_lifetime_ms=60_000)

    def properties(secret: str) -> dict[str, str]:
        jaas = f'{SCRAM} required username="{token.token_id}" password="{secret}" tokenauth="true";'
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
        }

    where, topic = broker.bootstrap("LOGIN"), f"read-by-token-{mechanism.lower()}"
    ana.topics.create(topic)
    assert penstock.arrow.read(topic, bootstrap=where, options=properties(token.hmac)).num_rows == 0
    file = tmp_path / "token.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties(token.hmac).items()))
    config = ("-b", where, "--command-config", str(file))
    listed = run_command("penstock", "topics", "list", *config)
    assert topic in listed.out, listed.err
    told = run_command("penstock", "produce", topic, "hello", *config)
    assert told.code == 1
    assert told.err.count("\n") == 1
    assert "sasl.jaas.config: librdkafka" in told.err
    with pytest.raises(AccessRefused, match=r"sasl\.jaas\.config") as refused:
        penstock.arrow.read(topic, bootstrap=where, options=properties("d3Jvbmc="))
    assert token.hmac not in str(refused.value) + told.err


def test_a_login_without_the_right_secret_fails(broker: SecuredBroker, ana: Cluster) -> None:
    token = ana.tokens.create()
    where = broker.bootstrap("LOGIN")
    with connected(where) as connection:
        answer = token_login(connection, "SCRAM-SHA-512", token.token_id, "d3Jvbmc=")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not lets_in(where, "SCRAM-SHA-512", "nobodys", token.hmac)


def test_a_token_that_was_ended_is_good_for_nothing(broker: SecuredBroker, ana: Cluster) -> None:
    token = ana.tokens.create()
    ana.tokens.expire(token.hmac)
    assert not lets_in(broker.bootstrap("LOGIN"), "SCRAM-SHA-512", token.token_id, token.hmac)
    with pytest.raises(Refused) as failure:
        ana.tokens.renew(token.hmac)
    assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_is_renewed_by_its_owner_and_renewers_only(ana: Cluster, bob: Cluster) -> None:
    token = ana.tokens.create()
    assert token.expires_ms - token.issued_ms == DAY_MS
    assert token.max_ms - token.issued_ms == WEEK_MS
    with pytest.raises(Refused) as failure:
        bob.tokens.renew(token.hmac)
    assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    with pytest.raises(Refused) as failure:
        bob.tokens.expire(token.hmac)
    assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    shared = ana.tokens.create(renewers=["User:bob"])
    assert shared.expires_ms <= bob.tokens.renew(shared.hmac)
    assert bob.tokens.renew(shared.hmac, 5_000) < shared.expires_ms
    (seen,) = [each for each in bob.tokens.list(["User:bob"]) if each.token_id == shared.token_id]
    assert (str(seen.owner), str(seen.requester)) == ("User:ana", "User:ana")
    assert [str(each) for each in seen.renewers] == ["User:bob"]
    assert seen.hmac == shared.hmac


def test_a_token_may_be_made_for_somebody_else(broker: SecuredBroker, ana: Cluster) -> None:
    token = ana.tokens.create(owner="User:carl")
    assert (str(token.owner), str(token.requester)) == ("User:carl", "User:ana")
    assert lets_in(broker.bootstrap("LOGIN"), "SCRAM-SHA-256", token.token_id, token.hmac)
    for principals in ({"owner": "Group:g"}, {"renewers": ["Group:g"]}):
        with pytest.raises(Refused) as failure:
            ana.tokens.create(**principals)  # type: ignore[arg-type]
        assert code_of(failure) == ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize("listener", ["PLAINTEXT", "TLS"])
def test_tokens_are_for_those_who_prove_who_they_are(broker: SecuredBroker, listener: str) -> None:
    properties = {"security.protocol": "PLAINTEXT"}
    if listener == "TLS":
        properties = {"security.protocol": "SSL", "ssl.truststore.location": str(broker.authority.path)}
    with Cluster(broker.bootstrap(listener), properties) as cluster:
        for ask in (
            cluster.tokens.list,
            cluster.tokens.create,
            lambda: cluster.tokens.renew("aa=="),
            lambda: cluster.tokens.expire("aa=="),
        ):
            with pytest.raises(Refused) as failure:
                ask()
            assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_certificate_proves_it_too(broker: SecuredBroker) -> None:
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(broker.authority.path),
        "ssl.keystore.location": str(broker.authority.issue("eva").pem()),
    }
    with Cluster(broker.bootstrap("MUTUAL"), properties) as cluster:
        assert cluster.tokens.create().owner.name.startswith("CN=eva")


def test_rules_say_who_has_to_do_with_the_tokens_of_others(tmp_path: Path, authority: Authority) -> None:
    options = {
        "delegation.token.secret.key": KEY,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ana",
    }
    with (
        SecuredBroker(tmp_path, authority, **options) as broker,
        cluster_of(broker.bootstrap("LOGIN"), "ana", 'p "a\\ss') as ana,
        cluster_of(broker.bootstrap("LOGIN"), "bob", "bobs") as bob,
    ):
        mine, theirs = bob.tokens.create(owner="User:bob"), ana.tokens.create()
        given = ana.tokens.create(owner="User:carl")
        with pytest.raises(Refused) as failure:
            bob.tokens.create(owner="User:carl")
        assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert [token.token_id for token in bob.tokens.list()] == [mine.token_id]
        assert bob.tokens.list(["User:carl"]) == []
        every = {mine.token_id, theirs.token_id, given.token_id}
        assert {token.token_id for token in ana.tokens.list()} == every


def test_without_a_key_there_are_no_tokens(secured: SecuredBroker) -> None:
    with cluster_of(secured.bootstrap("LOGIN"), "bob", "bobs") as cluster:
        for ask in (cluster.tokens.list, cluster.tokens.create, lambda: cluster.tokens.renew("aa==")):
            with pytest.raises(Refused) as failure:
                ask()
            assert code_of(failure) == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_the_key_is_not_told(broker: SecuredBroker, ana: Cluster) -> None:
    entries = ana.configs.describe(ConfigResource.broker(1))
    assert KEY not in repr(entries)


def test_tokens_outlive_a_restart(tmp_path: Path, authority: Authority) -> None:
    options = {"delegation.token.secret.key": KEY}
    with (
        SecuredBroker(tmp_path, authority, **options) as broker,
        cluster_of(broker.bootstrap("LOGIN"), "bob", "bobs") as bob,
    ):
        token = bob.tokens.create()
    with SecuredBroker(tmp_path, authority, **options) as broker:
        assert lets_in(broker.bootstrap("LOGIN"), "SCRAM-SHA-512", token.token_id, token.hmac)


def test_a_token_is_good_at_every_broker_of_a_cluster(tmp_path: Path, authority: Authority) -> None:
    ports = free_ports(2)
    protocol = "SASL_PLAINTEXT"
    options_of = {
        number: listener_options(authority, protocol, port)
        | {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"}
        for number, port in enumerate(ports, start=1)
    }
    options = {"delegation.token.secret.key": KEY, "delegation.token.expiry.check.interval.ms": "200"}
    with (
        PenstockCluster(
            tmp_path, ports=ports, options=options, options_of=options_of, session_timeout_ms=3_000
        ) as cluster,
        cluster_of(cluster.bootstrap, "ana", "a-secret") as ana,
    ):
        token = ana.tokens.create()
        for port in ports:
            wait_until(lambda port=port: has(port, token), "a login with the token")
        ana.tokens.expire(token.hmac, 100)
        for port in ports:
            wait_until(lambda port=port: not has(port, token), "the end of the token")
        wait_until(lambda: ana.tokens.list() == [], "removal of the token")


def has(port: int, token: Token) -> bool:
    return lets_in(f"127.0.0.1:{port}", "SCRAM-SHA-512", token.token_id, token.hmac)
