"""The table of client properties: every name once, values that cannot be, entries that contradict each other."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from penstock.client.clients import Connection
from penstock.client.errors import BadOption
from penstock.client.properties import NAMES, SECURITY_NAMES, check, to_librdkafka, unknown
from penstock.client.security import security_of

JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required username=ana password=hush;"
SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": JAAS}


def test_librdkafka_has_every_name_that_the_table_gives_it() -> None:
    def is_known(name: str) -> bool:
        try:
            Producer({name: "x", "log_level": 0})
        except KafkaException as error:
            return "No such configuration property" not in str(error)
        except TypeError:
            pass  # a wrong value is no matter here
        return True

    names = {other for name, other in NAMES.items() if other and name not in SECURITY_NAMES}
    assert [name for name in names if not is_known(name)] == []


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("sasl.mechanizm", "sasl.mechanism"),
        ("bootstrap.server", "bootstrap.servers"),
        ("ssl.trustore.location", "ssl.truststore.location"),
        ("enable.idempotent", "enable.idempotence"),
        ("what.is.this", ""),
    ],
)
def test_the_nearest_name_is_found(misspelt: str, meant: str) -> None:
    assert unknown({misspelt: "x", "acks": "all", "metrics.context.mine": "y"}) == {misspelt: meant}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("request.timeout.ms=soon", "request.timeout.ms: must be a number, not 'soon'"),
        (
            "auto.offset.reset=sometimes",
            "auto.offset.reset: must be earliest or latest or none or smallest or beginning or largest or end or error, "
            "not 'sometimes'",
        ),
        ("group.protocol=blah", "group.protocol: must be classic or consumer, not 'blah'"),
        (
            "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor,bogus",
            "partition.assignment.strategy: must be RangeAssignor or RoundRobinAssignor or CooperativeStickyAssignor or "
            "StickyAssignor, not 'bogus'",
        ),
        (
            "enable.ssl.certificate.verification=perhaps",
            "enable.ssl.certificate.verification: must be true or false, not 'perhaps'",
        ),
        ("metadata.max.age.ms=-7", "metadata.max.age.ms: must be at least 0, not -7"),
        (
            "retry.backoff.ms=9 retry.backoff.max.ms=5",
            "retry.backoff.ms: must not be more than retry.backoff.max.ms, which is 5",
        ),
        (
            "request.timeout.ms=2000 default.api.timeout.ms=1000",
            "request.timeout.ms: must not be more than default.api.timeout.ms, which is 1000",
        ),
        (
            "acks=all request.required.acks=1",
            "acks: is all, and request.required.acks, which means the same, is 1",
        ),
        (
            "client.dns.lookup=foo",
            "client.dns.lookup: must be use_all_dns_ips or resolve_canonical_bootstrap_servers_only, not 'foo'",
        ),
        ("acks=2", "acks: must be all or -1 or 0 or 1, not '2'"),
        ("acks=0 enable.idempotence=true", "acks: must be all with enable.idempotence=true, not 0"),
        ("acks=1 transactional.id=t", "acks: must be all with transactional.id, not 1"),
        (
            "enable.idempotence=false transactional.id=t",
            "enable.idempotence: must be true with transactional.id",
        ),
        ("retries=0 enable.idempotence=True", "retries: must be more than 0 with enable.idempotence=true"),
        (
            "max.in.flight.requests.per.connection=6 enable.idempotence=true",
            "max.in.flight.requests.per.connection: must be 5 or less with enable.idempotence=true",
        ),
        (
            "session.timeout.ms=3000 heartbeat.interval.ms=3000",
            "heartbeat.interval.ms: must be less than session.timeout.ms, which is 3000",
        ),
        (
            "delivery.timeout.ms=5 request.timeout.ms=5 linger.ms=0.5",
            "delivery.timeout.ms: must be at least linger.ms and request.timeout.ms together: 5.5",
        ),
        (
            "fetch.max.wait.ms=5 fetch.wait.max.ms=6",
            "fetch.max.wait.ms: is 5, and fetch.wait.max.ms, which means the same, is 6",
        ),
    ],
)
def test_what_cannot_be_is_named(given: str, complaint: str) -> None:
    properties = dict(word.split("=") for word in given.split())
    with pytest.raises(BadOption) as caught:
        check(properties)
    assert str(caught.value) == complaint
    with pytest.raises(BadOption):
        Connection("localhost:9092", properties)


@pytest.mark.parametrize(
    "given",
    [
        "acks=all enable.idempotence=true",
        "acks=all request.required.acks=-1",
        "acks=0 enable.idempotence=false",
        "acks=ALL retries=5 transactional.id=t",
        "linger.ms=0.5 fetch.max.wait.ms=5 fetch.wait.max.ms=5",
        "request.timeout.ms=500 default.api.timeout.ms=1000 socket.timeout.ms=700",
    ],
)
def test_what_fits_together_is_taken(given: str) -> None:
    check(dict(word.split("=") for word in given.split()))


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (
            {"sasl.mechanisms": "PLAIN"},
            "sasl.mechanism: is SCRAM-SHA-256, and sasl.mechanisms, which means the same, is PLAIN",
        ),
        ({"sasl.username": "ben"}, "sasl.username: is another one than in sasl.jaas.config; leave out one of them"),
        ({"sasl.password": "loud"}, "sasl.password: is another one than in sasl.jaas.config; leave out one of them"),
        (
            {"security.protocol": "SASL_SSL", "ssl.truststore.location": "/a", "ssl.truststore.certificates": "b"},
            "ssl.truststore.certificates: cannot be given together with ssl.truststore.location",
        ),
        (
            {"security.protocol": "SASL_SSL", "ssl.keystore.location": "/a", "ssl.keystore.key": "b"},
            "ssl.keystore.key: cannot be given together with ssl.keystore.location",
        ),
    ],
)  # fmt: skip
def test_security_that_contradicts_itself_is_named(changed: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption) as caught:
        security_of(SCRAM | changed)
    assert str(caught.value) == complaint


def test_both_dialects_may_say_the_same_login() -> None:
    same = {"sasl.mechanisms": "scram-sha-256", "sasl.username": "ana", "sasl.password": "hush"}
    assert security_of(SCRAM | same) == security_of(SCRAM)


def test_an_unknown_property_is_one_line_with_the_nearest_name(caplog: pytest.LogCaptureFixture) -> None:
    Connection("localhost:9092", {"sasl.mechanizm": "PLAIN", "what.is.this": "x", "client.id": "mine"})
    assert caplog.messages == [
        "WARN: there are no such client properties: sasl.mechanizm (did you mean sasl.mechanism?), what.is.this"
    ]


def test_a_login_without_a_protocol_that_uses_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    Connection("localhost:9092", {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": JAAS})
    assert caplog.messages == ["WARN: sasl.jaas.config has no effect: security.protocol is PLAINTEXT"]


def test_what_means_nothing_to_librdkafka_is_left_out() -> None:
    given = {"key.serializer": "a.B", "max.block.ms": "5", "what.is.this": "x", "linger.ms": "7"}
    assert to_librdkafka(given, role="producer") == {"linger.ms": "7"}


@pytest.mark.parametrize(
    "given",
    [
        {"auto.offset.reset": "none", "group.protocol": "Classic"},
        {"auto.offset.reset": "smallest", "partition.assignment.strategy": "range, roundrobin"},
        {
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor,RoundRobinAssignor"
        },
    ],
)
def test_the_values_of_both_dialects_are_taken_and_librdkafka_takes_ours(given: dict[str, str]) -> None:
    check(given)
    consumer = Consumer({**to_librdkafka(given, role="consumer"), "group.id": "g", "log_level": 0})
    consumer.close()
