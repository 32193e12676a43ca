"""The mark on a request that another broker passes on: whom it names, and from whom it is believed."""

from typing import Any

import pytest

from penstock.broker.access.authorizer import Authorizer
from penstock.broker.requests.call import Call
from penstock.broker.requests.forwarding import MARK, _marked, for_client, is_forwarded, is_relayed
from penstock.broker.requests.marks import Marks
from penstock.config.loading import load
from penstock.model.errors import ApiError, ErrorCode
from penstock.security.principals import Principal
from penstock.wire.framing import read_header
from penstock.wire.messages.create_topics import CreateTopicsRequest
from tests.hostile.raw_client import frame_of

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
BROKER = Principal("User", "broker")


class Node:
    def __init__(
        self, *, own: Principal | None = BROKER, listener: str = "", key: bytes = b"", **options: str
    ) -> None:
        self.marks = Marks(key)
        self.authorizer = Authorizer(load(options, {})[0])
        self.authorizer.own_principal = own
        self.authorizer.own_listener = listener


def call_of(principal: Principal, frame: bytes, host: str = "10.0.0.7") -> Call:
    connection: Any = type("Connection", (), {})()
    connection.principal, connection.peer_host, connection.listener_name = principal, host, "CLIENTS"
    return Call(connection, read_header(memoryview(bytearray(frame))))


def passed_on(
    client: Principal,
    by: Principal,
    *,
    client_id: str = "my client",
    host: str = "10.0.0.7",
    key: bytes = b"",
) -> Call:
    frame = frame_of(CreateTopicsRequest(), 7, 1, client_id)
    return call_of(by, _marked(frame, call_of(client, frame, host), Marks(key)), "10.0.0.2")


@pytest.mark.parametrize("name", ["alice", "CN=Ann Lee,O=Acme", "50%", "ü:x", ""])
@pytest.mark.parametrize("client_id", ["my client", "", " ", "User:eve 1.2.3.4 x"])
def test_the_client_is_named_whatever_she_is_called(name: str, client_id: str) -> None:
    node: Any = Node(**{"authorizer.class.name": STANDARD, "super.users": "User:broker"})
    alice = Principal("User", name)
    call = for_client(node, passed_on(alice, BROKER, client_id=client_id, host="fe80::1%eth0"))
    assert (call.principal, call.host, call.client_id) == (alice, "fe80::1%eth0", client_id)


def test_a_mark_of_who_is_no_broker_names_nobody() -> None:
    eve = Principal("User", "eve")
    for options in ({"authorizer.class.name": STANDARD, "super.users": "User:broker"}, {}):
        node: Any = Node(**options)
        call = for_client(node, passed_on(Principal("User", "admin"), eve))
        assert (call.principal, call.host) == (eve, "10.0.0.2")
        assert is_forwarded(call)  # it is not passed on again


def test_without_an_authorizer_a_login_as_the_brokers_is_believed_or_else_their_listener() -> None:
    alice = Principal("User", "alice")
    node: Any = Node()
    assert for_client(node, passed_on(alice, BROKER)).principal == alice
    node = Node(own=None, listener="BROKERS")
    assert for_client(node, passed_on(alice, BROKER)).principal == BROKER
    node = Node(own=None, listener="CLIENTS")
    assert for_client(node, passed_on(alice, BROKER)).principal == alice


@pytest.mark.parametrize("rest", ["", "x", "alice 10.0.0.1 c", "User:alice", "User:alice 10.0.0.1"])
def test_a_mark_that_names_nobody_is_refused_and_not_done_as_the_broker(rest: str) -> None:
    node: Any = Node(**{"authorizer.class.name": STANDARD, "super.users": "User:broker"})
    frame = frame_of(CreateTopicsRequest(), 7, 1, MARK + rest)
    with pytest.raises(ApiError) as refusal:
        for_client(node, call_of(BROKER, frame))
    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    eves = call_of(Principal("User", "eve"), frame)
    assert for_client(node, eves) is eves  # of who is no broker it is just a client id


def test_a_name_that_does_not_fit_into_the_mark_gets_nobody_the_brokers_rights() -> None:
    node: Any = Node(**{"authorizer.class.name": STANDARD, "super.users": "User:broker"})
    with pytest.raises(ApiError):
        for_client(node, passed_on(Principal("User", "ü" * 6000), BROKER))


@pytest.mark.parametrize("more", range(3))
def test_a_client_id_is_cut_between_its_letters(more: int) -> None:
    """Else the controller could not read the frame, and would close the connection by which others are passed on too."""
    node: Any = Node(**{"authorizer.class.name": STANDARD, "super.users": "User:broker"})
    alice = Principal("User", "alice" + "x" * more)
    call = for_client(node, passed_on(alice, BROKER, client_id="€" * 10_922))
    assert call.principal == alice
    assert set(call.client_id) == {"€"}


def test_where_clients_share_the_brokers_listener_a_mark_must_be_proven() -> None:
    alice, key = Principal("User", "alice"), b"of this cluster"
    node: Any = Node(own=None, listener="CLIENTS", key=key)
    for client_id in ("my client", "", " x;y z", "penstock-forwarded User:eve 10.0.0.1;00 x"):
        call = for_client(node, passed_on(alice, BROKER, client_id=client_id, key=key))
        assert (call.principal, call.host, call.client_id) == (alice, "10.0.0.7", client_id)
    proven = passed_on(alice, BROKER, key=key).client_id
    forged = (
        passed_on(alice, BROKER, key=b"").client_id,
        passed_on(alice, BROKER, key=b"another").client_id,
        proven.replace("alice", "admin"),
        proven.replace("10.0.0.7", "10.0.0.8"),
        proven.replace(";", "; "),
        proven.replace("10.0.0.7;", "10.0.0.7"),
    )
    for client_id in forged:
        assert client_id.startswith(MARK)
        call = call_of(BROKER, frame_of(CreateTopicsRequest(), 7, 1, client_id))
        assert not is_relayed(node, call)
        with pytest.raises(ApiError, match="no broker has proven that"):
            for_client(node, call)
