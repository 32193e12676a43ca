"""Clients and brokers come in with Kerberos tickets of a real key server."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import penstock.arrow
from penstock.client.connection import BrokerConnection
from penstock.client.errors import AccessRefused
from penstock.client.security import security_of
from penstock.credentials import gssapi
from penstock.credentials.gssapi import Acceptance, Acceptor, GssFailed, prove
from penstock.model.endpoints import Address
from penstock.security.kerberos import TicketSource
from penstock.stack.certificates import Authority
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import free_ports
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.java import QUIET_TOOL, TOOL_HEAP, java_command
from tests.clients.driver import WAIT_S, wait_until
from tests.kerberos import REALM, KerberosRealm
from tests.security.sasl_talk import AUTHENTICATION_FAILED, SaslTalk, refusal_at_start
from tests.security.secured_broker import PLAIN_USERS, SecuredBroker

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
BROKER = f"kafka/localhost@{REALM}"


class Kerberos:
    """A realm with a key for brokers on localhost, and one for ana."""

    def __init__(self, realm: KerberosRealm) -> None:
        self.realm = realm
        self.of_broker = realm.keytab("broker", "kafka/localhost", "kafka/127.0.0.1")
        self.of_ana = realm.keytab("ana", "ana")

    def jaas(self, keytab: Path, principal: str) -> str:
        return f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}";'

    def client(self, keytab: Path, principal: str = "ana") -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": self.jaas(keytab, f"{principal}@{REALM}"),
        }


@pytest.fixture(scope="module")
def kerberos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberos]:
    with pytest.MonkeyPatch.context() as patch, KerberosRealm(tmp_path_factory.mktemp("kerberos")) as realm:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        yield Kerberos(realm)


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, kerberos: Kerberos
) -> Iterator[SecuredBroker]:
    options = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,GSSAPI",
        "listener.name.login.gssapi.sasl.jaas.config": kerberos.jaas(kerberos.of_broker, "*"),
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1](kafka)s/.*/broker/,DEFAULT",
        "connection.failed.authentication.delay.ms": "20",
    }
    with SecuredBroker(tmp_path_factory.mktemp("broker"), authority, **options) as broker:
        yield broker


def connect(port: int, properties: dict[str, str]) -> None:
    connection = BrokerConnection(
        Address("localhost", port), client_id="test", timeout_s=WAIT_S, security=security_of(properties)
    )
    connection.ask(MetadataRequest(topics=[]), MetadataResponse)
    connection.close()


def test_a_keytab_and_a_ticket_cache_let_our_client_in(broker: SecuredBroker, kerberos: Kerberos) -> None:
    connect(broker.ports["LOGIN"], kerberos.client(kerberos.of_ana))
    cache = kerberos.realm.ticket_cache("ana", kerberos.of_ana)
    properties = kerberos.client(kerberos.of_ana)
    properties["sasl.jaas.config"] = f'{MODULE} required useTicketCache=true ticketCache="{cache}";'
    connect(broker.ports["LOGIN"], properties)
    of_librdkafka = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "GSSAPI",
        "sasl.kerberos.keytab": str(kerberos.of_ana),
        "sasl.kerberos.principal": "ana",
    }
    connect(broker.ports["LOGIN"], of_librdkafka)


def test_many_come_in_at_the_same_time(broker: SecuredBroker, kerberos: Kerberos) -> None:
    """Good tickets and garbage, side by side."""
    properties = kerberos.client(kerberos.of_ana)

    def garbage(number: int) -> None:
        with SaslTalk(broker.ports["LOGIN"], "GSSAPI") as talk:
            assert talk.say(b"\x60" + bytes(number)).code == AUTHENTICATION_FAILED

    with ThreadPoolExecutor(8) as threads:
        good = [threads.submit(connect, broker.ports["LOGIN"], properties) for _ in range(40)]
        bad = [threads.submit(garbage, number) for number in range(40)]
        for one in (*good, *bad):
            one.result(WAIT_S)


def java(kerberos: Kerberos, directory: Path, main_class: str, *words: str, given: str = "") -> str:
    file = directory / "client.properties"
    client = kerberos.client(kerberos.of_ana)
    file.write_text("".join(f"{name}={value}\n" for name, value in client.items()))
    command = java_command(
        main_class,
        *words,
        *("--command-config", str(file)),
        jvm_options=(*TOOL_HEAP, *QUIET_TOOL, f"-Djava.security.krb5.conf={kerberos.realm.config}"),
        quick=True,
    )
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_javas_clients_write_and_read(
    tmp_path: Path, broker: SecuredBroker, kerberos: Kerberos, topic_name: str
) -> None:
    at = ("--bootstrap-server", f"localhost:{broker.ports['LOGIN']}", "--topic", topic_name)
    java(kerberos, tmp_path, "org.apache.kafka.tools.ConsoleProducer", *at, given="one\ntwo\n")
    reading = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "60000")
    said = java(kerberos, tmp_path, "org.apache.kafka.tools.consumer.ConsoleConsumer", *at, *reading)
    assert said.split() == ["one", "two"]


def test_our_client_comes_in_at_apache_kafka(tmp_path: Path, kerberos: Kerberos) -> None:
    options = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "gssapi.sasl.jaas.config": kerberos.jaas(kerberos.of_broker, BROKER),
        "sasl.kerberos.service.name": "kafka",
    }
    heap = ("-Xmx512M", f"-Djava.security.krb5.conf={kerberos.realm.config}")
    with ApacheKafka(tmp_path, listeners={"SASL_PLAINTEXT": options}, heap=heap, quick=True) as kafka:
        port = int(kafka.address("SASL_PLAINTEXT").rpartition(":")[2])
        connect(port, kerberos.client(kerberos.of_ana))


def test_who_has_no_good_ticket_is_told_why_in_one_line(broker: SecuredBroker, kerberos: Kerberos) -> None:
    port = broker.ports["LOGIN"]
    with pytest.raises(AccessRefused, match="the ticket of nobody@") as refused:
        connect(port, kerberos.client(kerberos.of_ana, "nobody"))
    assert "\n" not in str(refused.value)
    stale = kerberos.realm.keytab("stale", "eva")
    kerberos.realm.run("kadmin.local", "-q", "cpw -randkey eva")
    with pytest.raises(AccessRefused, match="the ticket of eva@"):
        connect(port, kerberos.client(stale, "eva"))
    with pytest.raises(AccessRefused, match=r"other/localhost@.* not found in Kerberos database"):
        connect(port, {**kerberos.client(kerberos.of_ana), "sasl.kerberos.service.name": "other"})
    properties = kerberos.client(kerberos.of_ana)
    properties["sasl.jaas.config"] = f"{MODULE} required useTicketCache=true;"
    with pytest.raises(AccessRefused, match=r"the ticket from the ticket cache \(kinit\)"):
        connect(port, properties)


def test_a_keytab_that_is_out_of_date_is_in_the_brokers_log(
    tmp_path: Path, authority: Authority, kerberos: Kerberos
) -> None:
    """The broker has an older key than the key server: its clients' tickets are of no use."""
    old = kerberos.realm.keytab("old", "svc/localhost")
    kerberos.realm.run("kadmin.local", "-q", "cpw -randkey svc/localhost")
    options = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "svc",
        "listener.name.login.gssapi.sasl.jaas.config": kerberos.jaas(old, f"svc/localhost@{REALM}"),
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
    }
    client = {**kerberos.client(kerberos.of_ana), "sasl.kerberos.service.name": "svc"}
    with SecuredBroker(tmp_path, authority, **options) as broker:
        with pytest.raises(AccessRefused, match="invalid credentials with SASL mechanism GSSAPI"):
            connect(broker.ports["LOGIN"], client)
        lines = [line for line in broker.log().splitlines() if "a login from" in line]
        assert len(lines) == 1
        assert "Kerberos: " in lines[0]


@pytest.mark.parametrize("token", [b"", b"\0", b"garbage", b"\x60\x82\xff\xff" + bytes(200), bytes(300_000)])
def test_garbage_is_refused(broker: SecuredBroker, token: bytes) -> None:
    before = len(broker.log())
    with SaslTalk(broker.ports["LOGIN"], "GSSAPI") as talk:
        answer = talk.say(token)
        assert answer.code == AUTHENTICATION_FAILED
        assert "invalid credentials with SASL mechanism GSSAPI" in answer.message
        assert not talk.is_served()
    assert broker.log()[before:].count("a login from 127.0.0.1 failed: Kerberos: ") == 1


def test_a_half_exchange_lets_nobody_in(broker: SecuredBroker, kerberos: Kerberos) -> None:
    source = TicketSource(principal="ana", keytab=str(kerberos.of_ana))

    class Stopped(Exception): ...

    for steps in (1, 2):
        with SaslTalk(broker.ports["LOGIN"], "GSSAPI") as talk:
            said = 0

            def say(token: bytes, talk: SaslTalk = talk, steps: int = steps) -> bytes:
                nonlocal said
                said += 1
                answer = talk.say(token)
                assert answer.code == 0
                if said == steps:
                    raise Stopped
                return answer.token

            with pytest.raises(Stopped):
                prove(source, "localhost", say)
            assert not talk.is_served()


def test_nobody_acts_as_somebody_else_and_layers_are_not_given(kerberos: Kerberos) -> None:
    acceptor = Acceptor(TicketSource(principal=BROKER, keytab=str(kerberos.of_broker)))
    source = TicketSource(principal="ana", keytab=str(kerberos.of_ana))
    for said, why in ((b"\x01\0\0\0eva@OTHER", "somebody else"), (b"\x04\0\xff\xff", "security layer")):
        acceptance = Acceptance(acceptor)
        with pytest.MonkeyPatch.context() as patch:
            wrap = gssapi._Context.wrap
            texts = iter([b"\x01\0\0\0", said])
            patch.setattr(
                gssapi._Context, "wrap", lambda self, _, wrap=wrap, texts=texts: wrap(self, next(texts))
            )
            with pytest.raises(GssFailed, match=why):
                prove(source, "localhost", acceptance.step)
        assert acceptance.name is None


def test_a_ticket_that_is_over_is_told(broker: SecuredBroker, kerberos: Kerberos) -> None:
    cache = kerberos.realm.ticket_cache("ana", kerberos.of_ana, life="1s")
    properties = kerberos.client(kerberos.of_ana)
    properties["sasl.jaas.config"] = f'{MODULE} required useTicketCache=true ticketCache="{cache}";'
    said: list[str] = []

    def is_refused() -> bool:
        try:
            connect(broker.ports["LOGIN"], properties)
        except AccessRefused as refused:
            said.append(str(refused))
        return bool(said)

    wait_until(is_refused, "the end of the ticket")
    assert "expired" in said[0]


def test_a_clock_that_differs_is_in_the_brokers_log(
    tmp_path: Path, authority: Authority, kerberos: Kerberos, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This broker allows for one second, and the client's token is older when it comes."""
    config = tmp_path / "krb5.conf"
    config.write_text(
        kerberos.realm.config.read_text().replace("[libdefaults]", "[libdefaults]\n clockskew = 1")
    )
    options = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.login.gssapi.sasl.jaas.config": kerberos.jaas(kerberos.of_broker, BROKER),
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": PLAIN_USERS,
    }
    with monkeypatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(config))
        started = SecuredBroker(tmp_path / "broker", authority, **options)
    with started as broker, SaslTalk(broker.ports["LOGIN"], "GSSAPI") as talk:

        def say(token: bytes) -> bytes:
            made = time.time()
            wait_until(lambda: time.time() > made + 3, "the token's age")
            answer = talk.say(token)
            if answer.code:
                raise GssFailed(answer.message)
            return answer.token

        with pytest.raises(GssFailed, match="invalid credentials"):
            prove(TicketSource(principal="ana", keytab=str(kerberos.of_ana)), "localhost", say)
        assert broker.log().count("failed: Kerberos: 'Clock skew too great'") == 1


def test_commands_log_in_with_kerberos_and_those_that_need_librdkafka_say_so(
    tmp_path: Path, broker: SecuredBroker, kerberos: Kerberos
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{k}={v}\n" for k, v in kerberos.client(kerberos.of_ana).items()))

    def penstock(*words: str) -> subprocess.CompletedProcess[str]:
        at = ("-b", f"localhost:{broker.ports['LOGIN']}", "--command-config", str(file))
        command = [sys.executable, "-m", "penstock", *words, *at]
        return subprocess.run(command, input="x\n", capture_output=True, text=True, timeout=60, check=False)

    assert penstock("topics", "create", "by-kerberos").returncode == 0
    assert "by-kerberos" in penstock("topics", "list").stdout
    refused = penstock("produce", "by-kerberos")
    assert refused.returncode == 1
    assert "is built without Kerberos (GSSAPI)" in refused.stderr
    assert "Traceback" not in refused.stderr


def of_broker(kerberos: Kerberos, port: int) -> dict[str, str]:
    return {
        "listeners": f"SASL_PLAINTEXT://localhost:{port}",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": kerberos.jaas(kerberos.of_broker, BROKER),
    }


def test_brokers_log_in_at_one_another_with_tickets(tmp_path: Path, kerberos: Kerberos) -> None:
    ports = free_ports(2)
    options_of = {number: of_broker(kerberos, port) for number, port in enumerate(ports, start=1)}
    with PenstockCluster(tmp_path, ports=ports, options_of=options_of, session_timeout_ms=3_000) as cluster:
        at = ("--bootstrap-server", f"localhost:{ports[0]}", "--topic", "orders")
        making = ("--create", "--partitions", "2", "--replication-factor", "2")
        java(kerberos, tmp_path, "org.apache.kafka.tools.TopicCommand", *at, *making)
        java(kerberos, tmp_path, "org.apache.kafka.tools.ConsoleProducer", *at, given="one\ntwo\n")

        def is_in_sync() -> bool:
            said = java(kerberos, tmp_path, "org.apache.kafka.tools.TopicCommand", *at, "--describe")
            return said.count("Isr: 1,2") + said.count("Isr: 2,1") == 2

        wait_until(is_in_sync, "both replicas in sync")
        table = penstock.arrow.read(
            "orders", bootstrap=f"localhost:{ports[0]}", options=kerberos.client(kerberos.of_ana)
        )
        assert sorted(table.column("value").to_pylist()) == [b"one", b"two"]
        assert not any("Traceback" in cluster.log_text(number) for number in (1, 2))


def test_a_listener_without_a_key_is_not_opened(tmp_path: Path, kerberos: Kerberos) -> None:
    def refused(jaas: str | None, **more: str) -> str:
        properties = {"sasl.enabled.mechanisms": "GSSAPI", **more}
        name = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
        return refusal_at_start(tmp_path, properties if jaas is None else {**properties, name: jaas})

    assert "gssapi.sasl.jaas.config: must be given for GSSAPI" in refused(None)
    assert "No key table entry found" in refused(kerberos.jaas(kerberos.of_broker, f"other/host@{REALM}"))
    assert "'/none' not found" in refused(kerberos.jaas(Path("/none"), BROKER))
    good = kerberos.jaas(kerberos.of_broker, BROKER)
    assert "cannot read 'RULE:[" in refused(good, **{"sasl.kerberos.principal.to.local.rules": "RULE:["})


def test_a_machine_without_the_library_is_told_the_packages_name(kerberos: Kerberos) -> None:
    program = (
        "import penstock.credentials.gssapi as g\n"
        "g.LIBRARY = 'libnone.so.2'\n"
        "try: g.library()\n"
        "except g.GssFailed as failure: print(failure)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=os.environ,
    )
    assert done.stdout.strip().endswith("apt-get install libgssapi-krb5-2")
