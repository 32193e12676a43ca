"""The server's side of SCRAM, against the client of an independent library."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient, ScramException

from penstock.security.decoys import decoy
from penstock.security.scram import (
    MECHANISMS,
    Credential,
    ScramExchange,
    ScramFailed,
    credential_of,
    parse_credential,
    salted,
)
from penstock.security.tokens import SALT_BYTES, token_credential, token_decoy

SALT = b"0123456789abcdef"


def make_up(name: str, is_token: bool) -> Credential:
    if is_token:
        return token_decoy("SCRAM-SHA-256", name, b"key")
    return decoy(b"of this cluster alone", "SCRAM-SHA-256", name, {})


def credential(mechanism: str, password: str = "pencil", iterations: int = 4096) -> Credential:
    hashed = salted(mechanism, password, salt=SALT, iterations=iterations)
    return credential_of(mechanism, hashed, salt=SALT, iterations=iterations)


def exchange(mechanism: str, users: dict[str, Credential], nonce: str = "server-nonce") -> ScramExchange:
    return ScramExchange(
        mechanism, lambda name, is_token: None if is_token else users.get(name), nonce=nonce, make_up=make_up
    )


def log_in(mechanism: str, server: ScramExchange, name: str, password: str) -> None:
    client = ScramClient([mechanism], name, password)
    client.set_server_first(server.first(client.get_client_first().encode()).decode())
    client.set_server_final(server.final(client.get_client_final().encode()).decode())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_knows_the_password_is_let_in_and_sees_that_the_server_knows_it(mechanism: str) -> None:
    server = exchange(mechanism, {"ana,=": credential(mechanism)})
    log_in(mechanism, server, "ana,=", "pencil")
    assert server.name == "ana,="
    other = credential(mechanism)
    impostor = Credential(other.salt, other.stored_key, b"\0" * len(other.server_key), other.iterations)
    with pytest.raises(ScramException):
        log_in(mechanism, exchange(mechanism, {"ana": impostor}), "ana", "pencil")


@pytest.mark.parametrize("name", ["ana", "nobody"])
def test_a_wrong_password_and_an_unknown_user_look_the_same(name: str) -> None:
    server = exchange("SCRAM-SHA-256", {"ana": credential("SCRAM-SHA-256")})
    with pytest.raises(ScramFailed, match="wrong password, or no such user"):
        log_in("SCRAM-SHA-256", server, name, "guess")
    again = [exchange("SCRAM-SHA-256", {}).first(b"n,,n=nobody,r=abc") for _ in range(2)]
    assert again[0] == again[1], "asking twice must not tell a made-up salt from a user's"


def test_a_proof_counts_once_and_for_its_own_nonce() -> None:
    users = {"ana": credential("SCRAM-SHA-256")}
    server = exchange("SCRAM-SHA-256", users, nonce="first")
    client = ScramClient(["SCRAM-SHA-256"], "ana", "pencil", c_nonce="client")
    hello = client.get_client_first().encode()
    client.set_server_first(server.first(hello).decode())
    proof = client.get_client_final().encode()
    server.final(proof)
    with pytest.raises(ScramFailed, match="out of order"):
        server.final(proof)
    replayed = exchange("SCRAM-SHA-256", users, nonce="second")
    replayed.first(hello)
    with pytest.raises(ScramFailed, match="nonce"):
        replayed.final(proof)


def test_messages_out_of_order_or_in_another_name_fail() -> None:
    server = exchange("SCRAM-SHA-256", {"ana": credential("SCRAM-SHA-256")})
    with pytest.raises(ScramFailed, match="out of order"):
        server.final(b"c=biws,r=abc,p=" + base64.b64encode(bytes(32)))
    with pytest.raises(ScramFailed, match="somebody else"):
        server.first(b"n,a=admin,n=ana,r=abc")


def test_a_token_is_looked_up_as_such() -> None:
    asked = []
    server = ScramExchange(
        "SCRAM-SHA-256",
        lambda *what: asked.append(what),
        nonce="x",
        make_up=make_up,  # type: ignore[func-returns-value]
    )
    server.first(b"n,,n=token-id,r=abc,tokenauth=true")
    assert asked == [("token-id", True)]


def test_a_token_that_is_not_there_looks_like_one_that_is() -> None:
    def first(there: Credential | None) -> list[tuple[str, int]]:
        server = ScramExchange("SCRAM-SHA-256", lambda *_: there, nonce="x", make_up=make_up)
        answer = server.first(b"n,,n=token-id,r=abc,tokenauth=true").decode()
        return [(part[0], len(part)) for part in answer.split(",")[:2]] + [(answer[-6:], 0)]

    assert first(token_credential("SCRAM-SHA-256", b"secret", bytes(SALT_BYTES))) == first(None)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_failure(message: bytes) -> None:
    server = exchange("SCRAM-SHA-512", {"ana": credential("SCRAM-SHA-512", iterations=4)})
    for step in (server.first, server.final):
        try:
            assert isinstance(step(message), bytes)
        except ScramFailed:
            pass


def test_credentials_are_kept_as_kafka_keeps_them() -> None:
    text = (
        "salt=MWIxN3RucnlmZWxuNXZ5aTJscjdhYWZnMXc=,stored_key=YXVqyEtKd/gbVp+OQT9/oJV89G7IAcN38mupwK9qGj8=,"
        "server_key=x3FgCEaXFISgbRwep69h5JMOdr2KFOalLInabgJ/22E=,iterations=4096"
    )
    kept = parse_credential(text)
    assert str(kept) == text
    assert "YXVq" not in repr(kept)
    for bad in ("", "salt=x", text.replace("4096", "many"), text.replace("YXVq", "Y€Vq")):
        with pytest.raises(ValueError):
            parse_credential(bad)
