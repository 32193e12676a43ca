"""A cluster of ours with every kind of listener: what tests of clients ask of Apache Kafka (tests/secured.py), asked of us.

Two brokers on a ZooKeeper. They reach one another by TLS and SCRAM, and access rules are on: who is let in here is a super user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.config.loading import load
from penstock.stack.certificates import Authority
from penstock.stack.first_users import write_user
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports
from penstock.testing.zookeeper import ZooKeeperServer
from tests.identity_provider import AUDIENCE, ISSUER, IdentityProvider
from tests.secured import MODULES, PLAIN_USERS, Secured

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
BROKER_LOGIN = f'{MODULES}.scram.ScramLoginModule required username="broker" password="b-secret";'
SUPER_USERS = ("ana", "broker", "ANONYMOUS", "CN=client", "CN=java")
BROKERS = 2


class SecuredPenstock:
    def __init__(self, cluster: PenstockCluster, ports: Mapping[str, list[int]]) -> None:
        self.cluster = cluster
        self._ports = ports

    @property
    def bootstrap(self) -> str:
        return self.address("PLAINTEXT")

    def address(self, protocol: str) -> str:
        return f"127.0.0.1:{self._ports[protocol][0]}"


@contextmanager
def secured_penstock(directory: Path) -> Iterator[Secured]:
    authority = Authority(directory / "certificates")
    numbers = iter(free_ports(BROKERS * len(PROTOCOLS)))
    ports = {protocol: [next(numbers) for _ in range(BROKERS)] for protocol in PROTOCOLS}
    with IdentityProvider() as provider, ZooKeeperServer(directory / "zookeeper") as zookeeper:
        provider.secrets = {"ana": "token-secret"}
        config, _ = load({"zookeeper.connect": zookeeper.address, "broker.id": "1"})
        write_user(config, "broker", "b-secret")
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            write_user(config, "ana", "scram-secret", mechanism=mechanism)
        with PenstockCluster(
            directory,
            ports=ports["PLAINTEXT"],
            options=_options(authority, provider),
            options_of={
                number + 1: {
                    "listeners": ",".join(f"{one}://127.0.0.1:{ports[one][number]}" for one in PROTOCOLS)
                }
                for number in range(BROKERS)
            },
            zookeeper=zookeeper,
        ) as cluster:
            yield Secured(SecuredPenstock(cluster, ports), authority, directory, provider.token_url)
            for broker_id in cluster.broker_ids:
                text = cluster.log_text(broker_id)
                assert "Traceback" not in text, text
                assert "secret" not in text, text


def _options(authority: Authority, provider: IdentityProvider) -> dict[str, str]:
    mechanisms = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
    return {
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.enabled.mechanisms": mechanisms,
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": BROKER_LOGIN,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_USERS,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "1500",
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.keystore.location": str(authority.issue("server").pem()),
        "ssl.truststore.location": str(authority.path),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in SUPER_USERS),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
