"""A web server that answers little by little is not waited for longer than one that does not answer."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from penstock.credentials import signed_tokens, tokens
from penstock.credentials.signed_tokens import NoKeys, fetched_keys
from penstock.credentials.tokens import NoToken, token_of
from penstock.security.bearer import TokenSource
from tests.identity_provider import IdentityProvider

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BODY = HEAD + b"Content-Length: 100000\r\n\r\n"
TLS_RECORD = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"
DRIPS = {
    "nothing": (b"", b""),
    "the head": (HEAD, b"X-More: x\r\n"),
    "a line of the head": (HEAD, b"x"),
    "the body": (BODY, b" "),
    "a body without an end": (HEAD + b"\r\n", b" "),
}


@contextlib.contextmanager
def dripping(first: bytes, drop: bytes) -> Iterator[int]:
    """The port of a server that sends the first part at once, and then a drop at a time."""
    stops = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(60)

    def serve() -> None:
        with contextlib.suppress(OSError):
            client, _ = server.accept()
            with client:
                client.sendall(first)
                while not stops.wait(0.02):
                    client.sendall(drop)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        stops.set()
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.close()


@pytest.mark.parametrize("what", DRIPS)
def test_keys_that_come_little_by_little_are_given_up(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_tokens, "FETCH_TIMEOUT_S", 0.3)
    began_s = time.monotonic()
    with dripping(*DRIPS[what]) as port, pytest.raises(NoKeys, match="no answer in time"):
        fetched_keys(f"http://127.0.0.1:{port}/keys")
    assert time.monotonic() - began_s < 20


def test_a_handshake_that_comes_little_by_little_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_tokens, "FETCH_TIMEOUT_S", 0.3)
    with dripping(TLS_RECORD, b"x") as port, pytest.raises(NoKeys, match="no answer in time"):
        fetched_keys(f"https://127.0.0.1:{port}/keys")


def test_a_token_that_comes_little_by_little_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "REQUEST_TIMEOUT_S", 0.3)
    with dripping(*DRIPS["the head"]) as port, pytest.raises(NoToken, match="no answer in time"):
        token_of(TokenSource(f"http://127.0.0.1:{port}/token", "ana", "a-secret", "sasl.jaas.config"))


def test_each_address_of_a_host_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refusing = closed.getsockname()
    with IdentityProvider() as provider:
        port = int(provider.address.rpartition(":")[2])
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in (refusing, ("127.0.0.1", port))
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert "first" in fetched_keys(f"http://many:{port}/keys")
