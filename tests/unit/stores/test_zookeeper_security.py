from pathlib import Path

import pytest

from penstock.stores.zookeeper_sasl import LoginRefused, SaslUser, digest_login
from penstock.stores.zookeeper_security import JAAS, security_of

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
LOGIN = f'{MODULE} required username="kafka" password="s3cret";'
CHALLENGE = b'realm="zk-sasl-md5",nonce="abc",charset=utf-8,algorithm=md5-sess'


def test_the_login_stands_in_an_option_or_in_the_file_of_kafka_opts(tmp_path: Path) -> None:
    user = SaslUser("kafka", "s3cret")
    assert security_of({JAAS: LOGIN}, {}).user == user
    file = tmp_path / "my jaas.conf"
    file.write_text(f"KafkaServer {{ {LOGIN} }};\nClient {{\n  {LOGIN}\n}};\n")
    options = {"KAFKA_OPTS": f"-Xmx1g '-Djava.security.auth.login.config={file}'"}
    assert security_of({}, options).user == user
    file.write_text(f"KafkaServer {{ {LOGIN} }};\n")
    assert security_of({}, options).user is None
    assert "s3cret" not in repr(security_of({JAAS: LOGIN}, {}))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({JAAS: "x"}, f"^{JAAS}: line 1"),
        ({JAAS: "com.sun.security.auth.module.Krb5LoginModule required;"}, "only DigestLoginModule"),
        ({JAAS: f'{MODULE} required username="kafka";'}, "username="),
        ({"zookeeper.ssl.crl.enable": "true"}, r"^zookeeper\.ssl\.crl\.enable: "),
        ({"zookeeper.ssl.truststore.location": "/none"}, r"^zookeeper\.ssl\.truststore\.location"),
        ({"zookeeper.ssl.protocol": "SSLv3"}, r"^zookeeper\.ssl\.enabled\.protocols: 'SSLv3'"),
    ],
)
def test_what_cannot_be_used_is_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        security_of({"zookeeper.ssl.client.enable": "true", **given}, {})


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="KAFKA_OPTS: /none: cannot read it"):
        security_of({}, {"KAFKA_OPTS": "-Djava.security.auth.login.config=/none"})


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    login = digest_login(SaslUser("kafka", "s3cret"), "cnonce")
    assert next(login) == b""
    assert b"s3cret" not in login.send(CHALLENGE)
    with pytest.raises(LoginRefused, match="does not know our password"):
        login.send(b"rspauth=" + b"0" * 32)


@pytest.mark.parametrize("challenge", [b"", b'nonce="abc"', b"\xff\xfe", b'algorithm=md5-sess,realm="r"'])
def test_a_challenge_that_is_none_ends_the_login(challenge: bytes) -> None:
    login = digest_login(SaslUser("kafka", "s3cret"), "cnonce")
    next(login)
    with pytest.raises(LoginRefused):
        login.send(challenge)
