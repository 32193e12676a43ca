import asyncio
import json
from pathlib import Path

import pytest

from penstock.controller.decision import Decision
from penstock.controller.delegation_tokens import (
    Lifetimes,
    create_token,
    expire_token,
    expired_tokens,
    renew_token,
)
from penstock.metadata import znodes
from penstock.metadata.image import ClusterImage, TokenChanged
from penstock.metadata.load import load_image, prepare_tree
from penstock.metadata.tree import Create, Delete
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.tokens import DelegationToken
from penstock.stores.embedded import open_store
from penstock.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest

LIFETIMES = Lifetimes(longest_ms=1_000, renewal_ms=100)
ANA, BOB, EVE = "User:ana", "User:bob", "User:eve"


def made(
    *, owner: str = "", renewers: tuple[str, ...] = (BOB,), max_lifetime_ms: int = -1, notify: bool = False
) -> Decision[DelegationToken]:
    kind, _, name = owner.partition(":")
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=[
            CreatableRenewers(principal_type=each.partition(":")[0], principal_name=each.partition(":")[2])
            for each in renewers
        ],
        max_lifetime_ms=max_lifetime_ms,
    )
    return create_token(
        request, requester=ANA, token_id="t1", lifetimes=LIFETIMES, now_ms=5_000, notify=notify
    )


TOKEN = DelegationToken("t1", ANA, ANA, (BOB,), issued_ms=5_000, max_ms=6_000, expires_ms=5_100)


def test_a_token_belongs_to_whoever_asks_for_it() -> None:
    decision = made()
    assert decision.results == [TOKEN]
    assert decision.changes == [TokenChanged("t1", TOKEN)]
    assert made(owner="User:carl").results == [TOKEN._replace(owner="User:carl")]


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expires_ms"),
    [(-1, 6_000, 5_100), (0, 6_000, 5_100), (50, 5_050, 5_050), (500, 5_500, 5_100), (10**18, 6_000, 5_100)],
)
def test_nobody_gets_a_token_for_longer_than_the_brokers_say(
    asked_ms: int, max_ms: int, expires_ms: int
) -> None:
    (token,) = made(max_lifetime_ms=asked_ms).results
    assert (token.max_ms, token.expires_ms) == (max_ms, expires_ms)


@pytest.mark.parametrize("asked", [{"owner": "Group:g"}, {"renewers": (BOB, "Group:g")}])
def test_only_users_own_and_renew_tokens(asked: dict[str, str]) -> None:
    with pytest.raises(ApiError) as failure:
        made(**asked)  # type: ignore[arg-type]
    assert failure.value.code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_a_token_has_no_more_renewers_than_its_node_can_hold() -> None:
    with pytest.raises(ApiError) as failure:
        made(renewers=tuple(f"User:{number:030}" for number in range(3_000)))
    assert failure.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("now_ms", "period_ms", "expires_ms"),
    [(5_050, -1, 5_150), (5_050, 10, 5_060), (5_050, 10**18, 5_150), (5_100, 0, 5_200)],
)
def test_a_token_is_renewed_for_as_long_as_the_brokers_say(
    now_ms: int, period_ms: int, expires_ms: int
) -> None:
    decision = renew_token(TOKEN, period_ms, requester=BOB, lifetimes=LIFETIMES, now_ms=now_ms, notify=False)
    assert decision.results[0].expires_ms == expires_ms


def test_a_token_is_not_renewed_beyond_its_life() -> None:
    old = TOKEN._replace(expires_ms=5_990)
    decision = renew_token(old, -1, requester=ANA, lifetimes=LIFETIMES, now_ms=5_980, notify=False)
    assert decision.results[0].expires_ms == 6_000


@pytest.mark.parametrize(
    ("token", "requester", "now_ms", "code"),
    [
        (None, ANA, 5_000, ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        (TOKEN, EVE, 5_000, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (TOKEN, ANA, 5_101, ErrorCode.DELEGATION_TOKEN_EXPIRED),
    ],
)
def test_why_a_token_is_not_changed(
    token: DelegationToken | None, requester: str, now_ms: int, code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as failure:
        renew_token(token, -1, requester=requester, lifetimes=LIFETIMES, now_ms=now_ms, notify=False)
    assert failure.value.code == code
    with pytest.raises(ApiError) as failure:
        expire_token(token, 5, requester=requester, now_ms=now_ms, notify=False)
    assert failure.value.code == code


def test_an_expired_token_answers_as_apache_kafka_orders_it() -> None:
    """Renewing looks at the time first, ending at who asks; and who may, removes it even then."""
    with pytest.raises(ApiError) as failure:
        renew_token(TOKEN, -1, requester=EVE, lifetimes=LIFETIMES, now_ms=9_000, notify=False)
    assert failure.value.code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    with pytest.raises(ApiError) as failure:
        expire_token(TOKEN, 5, requester=EVE, now_ms=9_000, notify=False)
    assert failure.value.code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expire_token(TOKEN, -1, requester=ANA, now_ms=9_000, notify=False).changes == [
        TokenChanged("t1", None)
    ]


def test_who_ends_a_token_says_when() -> None:
    now = expire_token(TOKEN, -1, requester=BOB, now_ms=5_001, notify=True)
    assert now.results[0].expires_ms == 5_001
    assert now.ops == [
        Delete("/delegation_token/tokens/t1"),
        Create("/delegation_token/token_changes/token_change_", b"t1", sequence=True),
    ]
    assert (
        expire_token(TOKEN, 10**18, requester=ANA, now_ms=5_001, notify=False).results[0].expires_ms == 6_000
    )
    assert expire_token(TOKEN, 0, requester=ANA, now_ms=5_001, notify=False).results[0].expires_ms == 5_001


def test_expired_tokens_are_removed() -> None:
    image = ClusterImage()
    image.apply_all(
        [
            TokenChanged("t1", TOKEN),
            TokenChanged("t2", TOKEN._replace(token_id="t2", expires_ms=5_500)),
            TokenChanged("t3", TOKEN._replace(token_id="t3", max_ms=5_050)),
        ]
    )
    decision = expired_tokens(image, now_ms=5_101, notify=False)
    assert [token.token_id for token in decision.results] == ["t1", "t3"]
    image.apply_all(decision.changes)
    assert list(image.tokens) == ["t2"]


def test_a_node_looks_as_apache_kafka_writes_it() -> None:
    op = made(owner="User:CN=ana,O=acme").ops[0]
    assert isinstance(op, Create)
    assert op.path == "/delegation_token/tokens/t1"
    assert json.loads(op.data) == {
        "version": 3,
        "owner": "User%3ACN%3Dana%2CO%3Dacme",
        "tokenRequester": "User%3Aana",
        "renewers": ["User%3Abob"],
        "issueTimestamp": 5_000,
        "maxTimestamp": 6_000,
        "expiryTimestamp": 5_100,
        "tokenId": "t1",
    }


def test_nodes_of_older_versions_have_no_requester() -> None:
    data = (
        b'{"version":1,"owner":"User%3Aana","renewers":[],"issueTimestamp":1,"maxTimestamp":3,'
        b'"expiryTimestamp":2,"tokenId":"old"}'
    )
    token = znodes.decode_token("/delegation_token/tokens/old", data)
    assert token == DelegationToken("old", ANA, ANA, (), issued_ms=1, max_ms=3, expires_ms=2)


def test_a_node_that_cannot_be_read_is_named() -> None:
    with pytest.raises(znodes.BadNode, match="/delegation_token/tokens/t1"):
        znodes.decode_token("/delegation_token/tokens/t1", b'{"version":3}')


def test_the_tree_keeps_what_the_image_knows(tmp_path: Path) -> None:
    async def main() -> None:
        tree = open_store(str(tmp_path))
        await prepare_tree(tree, new_cluster_id="c")
        image = ClusterImage()
        image.set_cluster_id("c")
        for decision in (
            made(notify=True),
            renew_token(TOKEN, 50, requester=ANA, lifetimes=LIFETIMES, now_ms=5_010, notify=True),
        ):
            await tree.multi(decision.ops)
            image.apply_all(decision.changes)
        loaded = await load_image(tree)
        assert loaded.differences(image) == []
        assert loaded.tokens["t1"].expires_ms == 5_060
        other = ClusterImage()
        assert other.changes_to(loaded) == [TokenChanged("t1", loaded.tokens["t1"])]
        assert loaded.changes_to(other) == [TokenChanged("t1", None)]
        await tree.close()

    asyncio.run(main())
