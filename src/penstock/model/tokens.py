"""A delegation token: a name and a secret of its own, with which somebody acts as its owner for a time.

The secret is not part of it. It is made of the token's id with a key that the brokers share (`security/tokens`).
"""

from typing import NamedTuple


class DelegationToken(NamedTuple):
    """Principals are written as in `User:alice`."""

    token_id: str
    owner: str
    """Whoever logs in with the token."""
    requester: str
    """Who asked for it: its owner, or somebody who may ask for tokens of others."""
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    """It cannot be renewed to be good for longer than this."""
    expires_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def may_be_renewed_by(self, principal: str) -> bool:
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Whether the principal may see it without being allowed to by a rule."""
        return principal == self.requester or self.may_be_renewed_by(principal)
