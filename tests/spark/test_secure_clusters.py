"""Clusters behind TLS and SASL: Apache Kafka's and ours with every kind of listener, read by Arrow, by SQL and by Spark."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

import penstock.arrow
from penstock.arrow import ReadFailed
from penstock.client.connection import BrokerConnection
from penstock.client.login import log_in
from penstock.client.options import client_options
from penstock.client.security import Login
from penstock.client.topics import Client
from penstock.spark.failures import NotWritten
from penstock.spark.kafka_properties import for_librdkafka
from penstock.spark.writing.markers import ensure_marker_topic
from penstock.spark.writing.producing import make_producer
from penstock.stack.certificates import Authority
from tests.clients.admin import create_topic
from tests.docs.pages import blocks
from tests.secured import MODULES, PLAIN_LOGIN, SCRAM_LOGIN, STORE_PASSWORD, Secured, secured_cluster
from tests.secured_penstock import secured_penstock
from tests.spark.conftest import finish, produce, values

ROOT = Path(__file__).resolve().parents[2]
WRONG_LOGIN = SCRAM_LOGIN.replace("scram-secret", "another-secret")
COUNT = 300
WAIT_S = 60.0


def rows(secured: Secured, protocol: str, options: dict[str, str]) -> int:
    table = penstock.arrow.read("orders", bootstrap=secured.kafka.address(protocol), options=options)
    assert sorted(table["value"].to_pylist()) == [b"%03d" % number for number in range(COUNT)]
    return int(table.num_rows)


@pytest.fixture(scope="module", params=[secured_cluster, secured_penstock], ids=["Kafka", "Penstock"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with request.param(tmp_path_factory.mktemp("secured")) as running:
        create_topic(running.kafka.bootstrap, "orders", partitions=2)
        produce(running.kafka.bootstrap, "orders", [{"value": f"{number:03}"} for number in range(COUNT)])
        yield running


@pytest.mark.parametrize(
    ("protocol", "mechanism", "login"),
    [
        ("SASL_SSL", "SCRAM-SHA-256", SCRAM_LOGIN),
        ("SASL_SSL", "SCRAM-SHA-512", SCRAM_LOGIN),
        ("SASL_SSL", "PLAIN", PLAIN_LOGIN),
        ("SASL_PLAINTEXT", "SCRAM-SHA-256", SCRAM_LOGIN),
        ("SASL_PLAINTEXT", "PLAIN", PLAIN_LOGIN),
    ],
)
def test_every_login_is_let_in(secured: Secured, protocol: str, mechanism: str, login: str) -> None:
    options = secured.options(protocol, sasl_mechanism=mechanism, sasl_jaas_config=login)
    assert rows(secured, protocol, options) == COUNT


class TokenEndpoint(BaseHTTPRequestHandler):
    """Gives a token that is not signed, which Apache Kafka takes as long as it is told nothing about signatures."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        pair = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        is_known = (pair, form["grant_type"]) == ("ana:token-secret", ["client_credentials"])
        claims = {"sub": "ana", "iat": int(time.time()), "exp": int(time.time()) + 600}
        token = ".".join(_base64url(part) for part in ({"alg": "none"}, claims)) + "."
        said = json.dumps({"access_token": token, "expires_in": 600} if is_known else {}).encode()
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Type", "application/json")  # librdkafka insists on it
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _base64url(claims: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


@pytest.fixture
def token_endpoint() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


def test_a_token_is_asked_for_with_a_clients_id_and_secret(
    secured: Secured, token_endpoint: str, spark: SparkSession
) -> None:
    module = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
    options = secured.options(
        "SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=secured.token_url or token_endpoint,
        sasl_jaas_config=f'{module} clientId="ana" clientSecret="token-secret";',
    )
    assert rows(secured, "SASL_SSL", options) == COUNT
    check_by_librdkafka(secured, "SASL_SSL", options)
    bootstrap = {"kafka.bootstrap.servers": secured.kafka.address("SASL_SSL"), "subscribe": "orders"}
    kafkas = {f"kafka.{name}": value for name, value in options.items()}
    assert spark.read.format("penstock").options(**bootstrap, **kafkas).load().count() == COUNT
    options["sasl.jaas.config"] = options["sasl.jaas.config"].replace("token-secret", "another-secret")
    with pytest.raises(ReadFailed, match=r"gives no token: 401.*\(option sasl\.jaas\.config\)"):
        penstock.arrow.read("orders", bootstrap=secured.kafka.address("SASL_SSL"), options=options)


def test_a_login_that_the_broker_ends_is_made_anew(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    logins: list[str] = []

    def counted(connection: BrokerConnection, login: Login) -> int:
        logins.append(login.username)
        return log_in(connection, login)

    monkeypatch.setattr("penstock.client.login.log_in", counted)
    options = secured.options("SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN_LOGIN)
    client = Client(client_options(secured.kafka.address("SASL_PLAINTEXT"), options))
    deadline_s = time.monotonic() + WAIT_S
    try:
        while len(logins) < 2:
            assert client.topic("orders").name == "orders"
            assert time.monotonic() < deadline_s, "the broker has not ended the login"
    finally:
        client.close()


def test_librdkafkas_names_serve_as_well(secured: Secured) -> None:
    options = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "ana",
        "sasl.password": 'p "a\\ss',
        "ssl.ca.location": str(secured.authority.path),
    }
    assert rows(secured, "SASL_SSL", options) == COUNT


@pytest.mark.parametrize("form", ["pkcs12", "pem", "pem with a password", "texts", "librdkafka's files"])
def test_a_client_is_known_by_its_certificate(secured: Secured, form: str, tmp_path: Path) -> None:
    client = secured.authority.issue("client")
    match form:
        case "pkcs12":
            store = {"ssl.keystore.location": str(client.pkcs12("hush")), "ssl.keystore.password": "hush"}
        case "pem":
            store = {"ssl.keystore.location": str(client.pem()), "ssl.keystore.type": "PEM"}
        case "pem with a password":
            store = {"ssl.keystore.location": str(client.pem("hush")), "ssl.key.password": "hush"}
        case "texts":
            one_line = client.certificate_text().replace("\n", " ")
            store = {"ssl.keystore.key": client.key_text(), "ssl.keystore.certificate.chain": one_line}
        case _:
            (tmp_path / "client.crt").write_text(client.certificate_text())
            (tmp_path / "client.key").write_text(client.key_text())
            store = {
                "ssl.certificate.location": str(tmp_path / "client.crt"),
                "ssl.key.location": str(tmp_path / "client.key"),
            }
    options = {**secured.options("SSL"), **store}
    assert rows(secured, "SSL", options) == COUNT
    check_by_librdkafka(secured, "SSL", options)


def test_a_truststore_of_javas_keytool_is_read(secured: Secured) -> None:
    options = secured.options(
        "SASL_SSL",
        ssl_truststore_location=str(secured.java_truststore()),
        ssl_truststore_password=STORE_PASSWORD,
    )
    assert rows(secured, "SASL_SSL", options) == COUNT
    check_by_librdkafka(secured, "SASL_SSL", options)


def check_by_librdkafka(secured: Secured, protocol: str, options: dict[str, str]) -> None:
    """That the sink's client gets in with what a reader was given."""
    properties = {**options, "bootstrap.servers": secured.kafka.address(protocol)}
    consumer = Consumer({**for_librdkafka(properties), "group.id": "none", "log_level": 0})
    try:
        places = [TopicPartition("orders", partition) for partition in range(2)]
        assert sum(consumer.get_watermark_offsets(place, timeout=WAIT_S)[1] for place in places) == COUNT
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("listener", "protocol", "changed", "complaint"),
    [
        ("SASL_SSL", "SASL_SSL", {"sasl.jaas.config": WRONG_LOGIN}, r"refused the login of 'ana'.*sasl\.jaas\.config"),
        ("SASL_SSL", "SASL_SSL", {"sasl.mechanism": "PLAIN"}, r"refused the login of 'ana'.*sasl\.jaas\.config"),
        ("SASL_SSL", "SASL_SSL", {"ssl.truststore.location": "OTHER"}, r"is not trusted.*ssl\.truststore\.location"),
        ("SSL", "SSL", {}, r"does not take our certificate.*ssl\.keystore\.location"),
        ("SASL_SSL", "PLAINTEXT", {}, r"(it speaks TLS|want TLS\?) \(option security\.protocol\)"),
        ("SASL_SSL", "SSL", {}, r"does it want a login\? \(option security\.protocol\)"),
        ("SASL_PLAINTEXT", "PLAINTEXT", {}, r"does it want a login\? \(option security\.protocol\)"),
        ("PLAINTEXT", "SSL", {}, r"does it speak TLS\? \(option security\.protocol\)"),
        ("PLAINTEXT", "SASL_PLAINTEXT", {}, r"has no SASL \(option security\.protocol\)"),
    ],
)  # fmt: skip
def test_who_is_not_let_in_is_told_by_which_option(
    secured: Secured, listener: str, protocol: str, changed: dict[str, str], complaint: str
) -> None:
    options = secured.options(protocol) | changed
    if options.get("ssl.truststore.location") == "OTHER":
        options["ssl.truststore.location"] = str(Authority(secured.directory / "other").path)
    with pytest.raises(ReadFailed, match=complaint) as caught:
        penstock.arrow.read("orders", bootstrap=secured.kafka.address(listener), options=options)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_certificate_for_another_host_is_refused_unless_names_do_not_matter(secured: Secured) -> None:
    bootstrap = secured.kafka.address("SASL_SSL").replace("127.0.0.1", "localhost")
    options = secured.options("SASL_SSL")
    with pytest.raises(ReadFailed, match=r"is for another name.*ssl\.endpoint\.identification\.algorithm"):
        penstock.arrow.read("orders", bootstrap=bootstrap, options=options)
    options["ssl.endpoint.identification.algorithm"] = ""
    assert penstock.arrow.read("orders", bootstrap=bootstrap, options=options).num_rows == COUNT


def shown(page: str, language: str, secured: Secured) -> list[str]:
    """The blocks that a page has about security, for the cluster of this test."""
    text = (ROOT / "docs" / "how-to" / page).read_text().partition("## Clusters behind TLS and SASL\n")[2]
    text = text.partition("\n## ")[0].replace("kafka.example.com:9093", secured.kafka.address("SASL_SSL"))
    text = text.replace('="secret"', '="scram-secret"').replace(
        "/etc/kafka/ca.pem", str(secured.authority.path)
    )
    return blocks(text, language)


def test_penstock_sql_takes_a_clients_properties_file(secured: Secured, tmp_path: Path) -> None:
    (properties,) = shown("topics-as-tables.md", "properties", secured)
    (command,) = shown("topics-as-tables.md", "sh", secured)
    config = tmp_path / "client.properties"
    words = shlex.split(command.replace("bin/penstock", str(ROOT / "bin" / "penstock")))

    def ask() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=WAIT_S
        )

    config.write_text(properties)
    assert str(COUNT) in ask().stdout
    config.write_text(properties.replace("scram-secret", "another-secret"))
    refused = ask()
    assert refused.returncode == 1
    assert "refused the login of 'ana'" in refused.stderr
    assert (refused.stderr.count("\n"), "secret" in refused.stderr) == (1, False)


def test_the_program_of_the_page_about_spark_runs(secured: Secured, spark: SparkSession) -> None:
    (program,) = shown("spark.md", "python", secured)
    known: dict[str, Any] = {"spark": spark}
    exec(program, known)
    assert known["orders"].count() == COUNT


def test_a_stream_reads_and_writes_exactly_once_behind_sasl_and_tls(
    secured: Secured, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(secured.kafka.bootstrap, "copied")
    address = secured.kafka.address("SASL_SSL")
    security = {f"kafka.{name}": value for name, value in secured.options("SASL_SSL").items()}
    options = {"kafka.bootstrap.servers": address, **security}
    stream = spark.readStream.format("penstock").options(
        **options, **{"subscribe": "orders", "startingOffsets": "earliest", "commit.group": "copy"}
    )
    writer = stream.load().select("value").writeStream.format("penstock").options(**options)
    writer = writer.options(
        topic="copied", exactlyOnce="true", checkpointLocation=str(tmp_path / "checkpoint")
    )
    finish(writer.trigger(availableNow=True).start())
    copied = spark.read.format("penstock").options(
        **options, **{"subscribe": "copied", "kafka.isolation.level": "read_committed"}
    )
    assert values(copied.load()) == [f"{number:03}" for number in range(COUNT)]
    assert group_offsets(secured.kafka.bootstrap, "copy", "orders") == COUNT
    copied.load().explain(extended=True)
    assert "scram-secret" not in capsys.readouterr().out


def group_offsets(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        places = [TopicPartition(topic, partition) for partition in range(2)]
        return sum(place.offset for place in consumer.committed(places, timeout=WAIT_S))
    finally:
        consumer.close()


def test_spark_names_the_option_that_is_wrong(secured: Secured, spark: SparkSession) -> None:
    wrong = secured.options("SASL_SSL", sasl_jaas_config=WRONG_LOGIN)
    options = {f"kafka.{name}": value for name, value in wrong.items()}
    options["kafka.bootstrap.servers"] = secured.kafka.address("SASL_SSL")
    complaint = r"refused the login of 'ana'.*\(option 'kafka\.sasl\.jaas\.config'\)"
    with pytest.raises(Exception, match=complaint):
        spark.read.format("penstock").options(subscribe="orders", **options).load().count()
    rows = spark.range(1).selectExpr("cast(id as string) as value")
    properties = {name.removeprefix("kafka."): value for name, value in options.items()}
    with pytest.raises(NotWritten, match=complaint):
        ensure_marker_topic(properties)
    with pytest.raises(NotWritten, match="refused the login of 'ana'"):
        make_producer(for_librdkafka(properties))
    with pytest.raises(Exception, match=complaint) as caught:
        rows.write.format("penstock").options(topic="orders", **options).mode("append").save()
    assert "secret" not in str(caught.value)
