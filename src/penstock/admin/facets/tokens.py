"""`cluster.tokens`."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.admin.clients import ClusterClients
from penstock.admin.tokens import (
    BROKERS_CHOICE,
    Token,
    create_token,
    expire_token,
    parse_principal,
    renew_token,
    tokens,
)


class Tokens:
    """Delegation tokens. Principals are written as in `User:ana`."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def list(self, owners: Sequence[str] = ()) -> list[Token]:
        """The tokens that we may see; of these owners or renewers only, if some are named.

        >>> cluster.tokens.list()
        [Token(token_id='Yj0DIzfoSIK_VVGvR6AVfg', owner='User:ana', expires_ms=1795125600000)]
        """
        named = [parse_principal(owner) for owner in owners]
        return self._clients.call(lambda client: tokens(client, named))

    def create(
        self,
        *,
        owner: str | None = None,
        renewers: Sequence[str] = (),
        max_lifetime_ms: int = BROKERS_CHOICE,
    ) -> Token:
        """A new token: of us, or of another owner if we may do that.

        >>> cluster.tokens.create(renewers=["User:scheduler"])
        Token(token_id='Yj0DIzfoSIK_VVGvR6AVfg', owner='User:ana', expires_ms=1795125600000)
        """
        of = None if owner is None else parse_principal(owner)
        others = [parse_principal(each) for each in renewers]
        return self._clients.change(
            lambda client: create_token(client, owner=of, renewers=others, max_lifetime_ms=max_lifetime_ms)
        )

    def renew(self, hmac: str, period_ms: int = BROKERS_CHOICE) -> int:
        """Until when the token is good now, in milliseconds since 1970.

        >>> cluster.tokens.renew(token.hmac)
        1795212000000
        """
        return self._clients.change(lambda client: renew_token(client, hmac, period_ms))

    def expire(self, hmac: str, period_ms: int = -1) -> int:
        """Ends the token now, or after a time.

        >>> cluster.tokens.expire(token.hmac)
        1795039200000
        """
        return self._clients.change(lambda client: expire_token(client, hmac, period_ms))
