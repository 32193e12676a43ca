"""Those who come to do harm: on the wrong port, slowly, all at once, and with messages of SCRAM that are not in their place."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka.admin import AdminClient
from scramp import ScramClient

from penstock.stack.certificates import Authority
from tests.clients.driver import WAIT_S, wait_until
from tests.security.secured_broker import SecuredBroker
from tests.security.test_listeners import (
    METADATA,
    client_options,
    connect,
    ends,
    frame,
    make_user,
    write_and_read,
)

MECHANISM, USER, PASSWORD = "SCRAM-SHA-256", "eva", "s3cret"
REFUSED = 58  # SASL_AUTHENTICATION_FAILED
OUT_OF_ORDER = 34  # ILLEGAL_SASL_STATE
UNSUPPORTED = 33  # UNSUPPORTED_SASL_MECHANISM
FLOOD = 200


def hello() -> bytes:
    """What a TLS client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def is_served(secured: SecuredBroker, listener: str = "TLS") -> None:
    AdminClient(client_options(secured, listener)).list_topics(timeout=WAIT_S)


def receive(client: socket.socket) -> bytes:
    """A frame; nothing where the connection ends."""

    def exactly(count: int) -> bytes:
        found = b""
        while len(found) < count and (part := client.recv(count - len(found))):
            found += part
        return found

    size = exactly(4)
    return exactly(struct.unpack(">i", size)[0]) if len(size) == 4 else b""


def handshake(client: socket.socket, mechanism: str = MECHANISM) -> None:
    client.sendall(frame(17, 1, struct.pack(">h", len(mechanism)) + mechanism.encode()))
    assert receive(client)[4:6] == b"\0\0"


def authenticate(client: socket.socket, token: bytes) -> tuple[int, bytes]:
    """The error code, and the server's token."""
    client.sendall(frame(36, 1, struct.pack(">i", len(token)) + token))
    answer = receive(client)
    if not answer:
        return REFUSED, b""
    (code,) = struct.unpack_from(">h", answer, 4)
    (text_size,) = struct.unpack_from(">h", answer, 6)
    place = 8 + max(0, text_size)
    (size,) = struct.unpack_from(">i", answer, place)
    return code, answer[place + 4 : place + 4 + max(0, size)]


def test_tls_on_a_plain_port_is_closed(secured: SecuredBroker) -> None:
    for listener in ("PLAINTEXT", "LOGIN"):
        with connect(secured, listener) as client:
            client.sendall(hello())
            assert ends(client)
    is_served(secured)


def test_half_a_handshake_ends_at_its_deadline(secured: SecuredBroker) -> None:
    """Ten seconds, however it began, and with one line in the log."""
    told = "the TLS handshake took too long"
    before = secured.log().count(told)
    shares = (1, 5, 100)
    with contextlib.ExitStack() as held:
        clients = [held.enter_context(connect(secured, "TLS")) for _ in shares]
        for client, share in zip(clients, shares, strict=True):
            client.settimeout(WAIT_S)
            client.sendall(hello()[:share])
        begun_s = time.monotonic()
        is_served(secured)
        assert [client.recv(100) for client in clients] == [b""] * len(shares)
        assert time.monotonic() - begun_s > 5, "it was given a chance"
    wait_until(lambda: secured.log().count(told) >= before + len(shares), "a line for each")
    assert secured.log().count(told) == before + len(shares)


def test_a_probe_is_not_complained_of(secured: SecuredBroker) -> None:
    before = secured.log().count("closing the connection")
    for _ in range(5):
        connect(secured, "TLS").close()
    is_served(secured)
    with connect(secured, "TLS") as client:  # handled in order: when this is told of, the probes are over
        client.sendall(METADATA)
        assert ends(client)
    wait_until(lambda: secured.log().count("closing the connection") > before, "the line about the last one")
    assert secured.log().count("closing the connection") == before + 1


def test_half_frames_of_strangers_neither_fill_memory_nor_keep_others_from_writing(
    secured: SecuredBroker, topic_name: str
) -> None:
    """Each announces half a mebibyte, and sends a part of it."""
    login = {"sasl_mechanisms": "PLAIN", "sasl_username": "ana", "sasl_password": 'p "a\\ss'}
    before = secured.process.usage().resident_bytes
    with contextlib.ExitStack() as held:
        for _ in range(560):
            client = held.enter_context(connect(secured, "LOGIN"))
            with contextlib.suppress(ConnectionError):
                client.sendall(struct.pack(">i", 524_288) + bytes(70_000))
        write_and_read(client_options(secured, "LOGIN", **login), topic_name, size=800_000, count=5)
        grown = secured.process.usage().resident_bytes - before
    assert grown < 120 << 20, f"{grown >> 20} MiB for 560 connections"


def test_a_flood_of_wrong_logins_does_not_keep_others_out(secured: SecuredBroker) -> None:
    make_user(secured, USER, PASSWORD)

    def guess(number: int) -> int:
        with connect(secured, "LOGIN") as client:
            client.settimeout(WAIT_S)
            handshake(client, "SCRAM-SHA-512")
            guesser = ScramClient(["SCRAM-SHA-512"], USER, f"guess-{number}")
            _, first = authenticate(client, guesser.get_client_first().encode())
            guesser.set_server_first(first.decode())
            code, _ = authenticate(client, guesser.get_client_final().encode())
            return code

    with ThreadPoolExecutor(20) as pool:
        guesses = [pool.submit(guess, number) for number in range(FLOOD)]
        login = {"sasl_mechanisms": "SCRAM-SHA-512", "sasl_username": USER, "sasl_password": PASSWORD}
        for _ in range(3):
            AdminClient(client_options(secured, "LOGIN", **login)).list_topics(timeout=WAIT_S)
        assert {each.result(WAIT_S) for each in guesses} == {REFUSED}
    assert "guess-" not in secured.log()


def test_messages_of_scram_out_of_order_let_nobody_in(secured: SecuredBroker) -> None:
    final = b"c=biws,r=abc,p=" + b"A" * 43 + b"="
    with connect(secured, "LOGIN") as client:  # without a handshake
        code, _ = authenticate(client, b"n,,n=eva,r=abc")
        assert code in (REFUSED, OUT_OF_ORDER)
        assert ends(client)
    with connect(secured, "LOGIN") as client:  # the last message first
        handshake(client)
        assert authenticate(client, final)[0] == REFUSED
        assert ends(client)
    with connect(secured, "LOGIN") as client:  # the first message twice
        handshake(client)
        assert authenticate(client, b"n,,n=eva,r=abc")[0] == 0
        assert authenticate(client, b"n,,n=eva,r=abc")[0] == REFUSED
        assert ends(client)
    with connect(secured, "LOGIN") as client:  # another mechanism in between
        handshake(client)
        assert authenticate(client, b"n,,n=eva,r=abc")[0] == 0
        client.sendall(frame(17, 1, b"\x00\x05PLAIN"))
        assert receive(client)[4:6] in (struct.pack(">h", OUT_OF_ORDER), b"")


def test_a_mechanism_that_is_not_offered_ends_the_connection(secured: SecuredBroker) -> None:
    with connect(secured, "LOGIN") as client:
        client.sendall(frame(17, 1, b"\x00\x03NTL") + frame(17, 1, b"\x00\x05PLAIN"))
        assert receive(client)[4:6] == struct.pack(">h", UNSUPPORTED)
        assert receive(client) == b""


def test_who_is_in_for_good_cannot_log_in_again(secured: SecuredBroker) -> None:
    with connect(secured, "LOGIN") as client:
        handshake(client, "PLAIN")
        assert authenticate(client, b"\0bob\0bobs")[0] == 0
        client.sendall(frame(17, 1, b"\x00\x05PLAIN"))
        assert receive(client)[4:6] == struct.pack(">h", OUT_OF_ORDER)
        assert authenticate(client, b"\0ana\0guess")[0] == OUT_OF_ORDER
        client.sendall(METADATA)
        assert receive(client), "it is still served"


def test_a_login_does_not_tell_who_exists(tmp_path: Path, authority: Authority) -> None:
    """Neither by what it answers, nor by what it answers elsewhere, or after a start."""

    def answers(secured: SecuredBroker) -> dict[str, tuple[bytes, bytes]]:
        """Salt and iterations, by name."""
        found = {}
        for name in (USER, "nobody"):
            with connect(secured, "LOGIN") as client:
                handshake(client, "SCRAM-SHA-512")
                _, first = authenticate(client, f"n,,n={name},r=abc".encode())
                salt, iterations = first.split(b",")[1:]
                found[name] = salt, iterations
        return found

    with SecuredBroker(tmp_path, authority) as secured:
        make_user(secured, USER, PASSWORD)
        before = answers(secured)
    with SecuredBroker(tmp_path, authority) as secured:
        assert answers(secured) == before
    assert before[USER][1] == before["nobody"][1]
    assert len(before[USER][0]) == len(before["nobody"][0])
    assert before[USER][0] != before["nobody"][0]


def test_a_login_that_was_overheard_is_of_no_use(secured: SecuredBroker) -> None:
    """The same messages again, to a server that has another nonce by then."""
    make_user(secured, USER, PASSWORD)
    scram = ScramClient(["SCRAM-SHA-512"], USER, PASSWORD)
    with connect(secured, "LOGIN") as client:
        handshake(client, "SCRAM-SHA-512")
        first = scram.get_client_first().encode()
        _, answer = authenticate(client, first)
        scram.set_server_first(answer.decode())
        final = scram.get_client_final().encode()
        code, proof = authenticate(client, final)
        assert code == 0
        scram.set_server_final(proof.decode())
    with connect(secured, "LOGIN") as client:
        handshake(client, "SCRAM-SHA-512")
        code, other = authenticate(client, first)
        assert code == 0
        assert other != answer
        assert authenticate(client, final)[0] == REFUSED
        assert ends(client)
