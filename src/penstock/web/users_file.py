"""The users of HTTP basic: a file with a line `name: password,role,role` for each, as Jetty's login modules have it.

A password stands there as it is, or as `MD5:hex` (Jetty's form), or as `PBKDF2:iterations:salt:key` (SHA-256, salt and key in
hex). `hashed` makes the last form.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from typing import Final, NamedTuple

from penstock.client.errors import BadOption

ITERATIONS: Final = 100_000
MAX_ITERATIONS: Final = 10_000_000
_NOBODY: Final = "MD5:-"


class User(NamedTuple):
    name: str
    secret: str
    roles: frozenset[str]


def hashed(password: str, *, salt: bytes, iterations: int = ITERATIONS) -> str:
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    return f"PBKDF2:{iterations}:{salt.hex()}:{key.hex()}"


def parse_users(text: str, *, option: str) -> dict[str, User]:
    """BadOption, which names the line but not what is in it, for one that cannot be read."""
    users = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        name, colon, rest = words.partition(":")
        secret, *roles = (part.strip() for part in rest.split(","))
        if not colon or not name.strip() or not secret or not _is_usable(secret):
            raise BadOption(f"{option}: line {number} is not `name: password,role`")
        users[name.strip()] = User(name.strip(), secret, frozenset(filter(None, roles)))
    return users


def is_let_in(users: dict[str, User], name: str, password: str, roles: Collection[str]) -> bool:
    """An unknown name takes as long as a wrong password of a name with a plain one."""
    user = users.get(name)
    is_right = _matches(user.secret if user else _NOBODY, password)
    if user is None or not is_right:
        return False
    return "*" in roles or not user.roles.isdisjoint(roles)


def _is_usable(secret: str) -> bool:
    if not secret.startswith("PBKDF2:"):
        return not secret.startswith(("CRYPT:", "OBF:"))
    try:
        _, iterations, salt, key = secret.split(":")
        bytes.fromhex(salt), bytes.fromhex(key)
        return 0 < int(iterations) <= MAX_ITERATIONS
    except ValueError:
        return False


def _matches(secret: str, password: str) -> bool:
    if secret.startswith("PBKDF2:"):
        _, iterations, salt, _ = secret.split(":")
        return hmac.compare_digest(
            secret.lower(), hashed(password, salt=bytes.fromhex(salt), iterations=int(iterations)).lower()
        )
    if secret.startswith("MD5:"):
        digest = hashlib.md5(password.encode(), usedforsecurity=False).hexdigest()
        return hmac.compare_digest(secret[4:].lower().encode(), digest.encode())
    return hmac.compare_digest(secret.encode(), password.encode())
