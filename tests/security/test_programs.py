"""Programs with our libraries at a secured cluster of ours, and clients whose user goes away while they are connected."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.client.librdkafka_settings import librdkafka_settings
from penstock.consumer import Backoff, Output, Processor, Record
from penstock.stack.certificates import Authority
from tests.clients.driver import WAIT_S, wait_until
from tests.cluster.clients import values_in
from tests.secured import Secured
from tests.secured_penstock import secured_penstock
from tests.security.secured_broker import SecuredBroker
from tests.security.test_listeners import client_options, make_user

VALUES = [b"a", b"poison", b"b"]
SCRAM = {"sasl.username": "ana", "sasl.password": "scram-secret"}
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required username=ana password=scram-secret;"
TOKENS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'clientId="ana" clientSecret="token-secret";'
)
LOGINS = {
    "SCRAM-SHA-512 over TLS": ("SASL_SSL", {"sasl.mechanisms": "SCRAM-SHA-512", **SCRAM}),
    "SCRAM-SHA-256 over TLS": ("SASL_SSL", {"sasl.mechanisms": "SCRAM-SHA-256", **SCRAM}),
    "PLAIN": ("SASL_PLAINTEXT", {"sasl.mechanisms": "PLAIN", "sasl.username": "ana", "sasl.password": 'p "a\\ss'}),
    "a certificate": ("SSL", {}),
    "OAUTHBEARER over TLS": ("SASL_SSL", {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": TOKENS}),
    "Java's names": ("SASL_SSL", {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS}),
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_penstock(tmp_path_factory.mktemp("secured")) as running:
        yield running


def settings_for(cluster: Secured, kind: str) -> tuple[str, dict[str, str]]:
    protocol, login = LOGINS[kind]
    settings = {"security.protocol": protocol.lower(), **login}
    if "sasl.jaas.config" in settings:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(cluster.authority.path)}
    if settings.get("sasl.mechanism") == "OAUTHBEARER":
        settings["sasl.oauthbearer.token.endpoint.url"] = cluster.token_url
    elif "sasl.jaas.config" not in settings and protocol.endswith("SSL"):
        settings["ssl.ca.location"] = str(cluster.authority.path)
    if protocol == "SSL":
        issued = cluster.authority.issue("client")
        settings |= {"ssl.certificate.pem": issued.certificate_text(), "ssl.key.pem": issued.key_text()}
    return cluster.kafka.address(protocol), settings


@pytest.mark.parametrize("kind", LOGINS)
def test_a_processor_reads_writes_and_sets_aside(cluster: Secured, topic_name: str, kind: str) -> None:
    """Exactly once: a transaction, the group's offsets, and the topic of dead letters that it makes itself."""
    bootstrap, settings = settings_for(cluster, kind)
    plain = librdkafka_settings(settings, role="admin")
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **plain})
    results = f"{topic_name}-results"
    for made in admin.create_topics([NewTopic(topic_name, 1, 2), NewTopic(results, 1, 2)]).values():
        made.result(WAIT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **plain})
    for value in VALUES:
        producer.produce(topic_name, value)
    assert producer.flush(WAIT_S) == 0

    def handle(record: Record) -> Output:
        if record.value == b"poison":
            raise LookupError("no such customer")
        return Output(results, value=(record.value or b"").upper())

    processor = Processor(
        topic_name,
        group=f"group-{topic_name}",
        handler=handle,
        bootstrap=bootstrap,
        guarantee="exactly-once",
        retries=1,
        backoff=Backoff(0.01, factor=1.0, jitter=0.0),
        settings=settings,
        stop_at_end=True,
    )
    counters = processor.run()
    assert (counters.handled, counters.dead_letters) == (3, 1)
    committed = {**plain, "isolation.level": "read_committed"}
    wait_until(lambda: values_of(bootstrap, results, committed) == [b"A", b"B"], "the results")
    assert values_of(bootstrap, f"{topic_name}.dlq", committed) == [b"poison"]


def values_of(bootstrap: str, topic: str, settings: dict[str, str]) -> list[bytes]:
    """Without the markers of transactions, which take offsets, too."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True, "log_level": 0, **settings}
    )  # fmt: skip
    found: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        deadline_s = time.monotonic() + WAIT_S
        while time.monotonic() < deadline_s:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return found
            assert error is None, error
            found.append(message.value() or b"")
    finally:
        consumer.close()
    raise AssertionError("the end of the topic was not reached")


def test_a_user_that_is_removed_ends_with_its_login(
    tmp_path: Path, authority: Authority, topic_name: str
) -> None:
    """While it is there, logins are repeated each second and no record is lost for it; then the next one is refused."""
    with SecuredBroker(tmp_path, authority, **{"connections.max.reauth.ms": "1000"}) as broker:
        make_user(broker, "eva", "s3cret")
        login = {"sasl_mechanisms": "SCRAM-SHA-512", "sasl_username": "eva", "sasl_password": "s3cret"}
        told: list[KafkaError] = []
        options: dict[str, object] = {**client_options(broker, "SECURE", **login), "error_cb": told.append}
        producer = Producer(options)
        failures: list[object] = []
        count, began_s = 0, time.monotonic()
        while time.monotonic() - began_s < 3:  # three logins
            producer.produce(
                topic_name, b"%d" % count, on_delivery=lambda error, _: error and failures.append(error)
            )
            count += 1
            producer.poll(0.01)
        assert producer.flush(WAIT_S) == 0
        assert not failures
        assert not told
        plain = AdminClient(client_options(broker, "PLAINTEXT"))
        from confluent_kafka.admin import ScramMechanism, UserScramCredentialDeletion

        gone = UserScramCredentialDeletion("eva", ScramMechanism.SCRAM_SHA_512)
        for future in plain.alter_user_scram_credentials([gone]).values():
            future.result(WAIT_S)

        def is_refused() -> bool:
            producer.poll(0.1)
            return any(error.code() == KafkaError._AUTHENTICATION for error in told)

        wait_until(is_refused, "the refusal")
        producer.purge()
        bootstrap = broker.bootstrap("PLAINTEXT")
        assert len(values_in(bootstrap, topic_name, 1, {})) == count
