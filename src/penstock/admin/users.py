"""Users with SCRAM credentials.

A password never crosses the wire. What is sent is made of it, and is as good for a login as the password: use TLS.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import UserError
from penstock.model.errors import ErrorCode
from penstock.security.scram import (
    DEFAULT_ITERATIONS,
    MAX_ITERATIONS,
    MECHANISM_CODES,
    MIN_ITERATIONS,
    salted,
)
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

DEFAULT_MECHANISM = "SCRAM-SHA-512"
SALT_BYTES = 24
_CODES = {name: code for code, name in MECHANISM_CODES.items()}


class UserCredential(NamedTuple):
    name: str
    mechanism: str
    iterations: int


def users(client: ClusterClient, names: Sequence[str] = ()) -> list[UserCredential]:
    """Of these users, or of all. Those that are not there are left out."""
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] or None)
    answer = client.ask(request, DescribeUserScramCredentialsResponse)
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
    found = []
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            raise refused(result.error_code, result.error_message)
        for info in result.credential_infos:
            mechanism = MECHANISM_CODES.get(info.mechanism, f"mechanism {info.mechanism}")
            found.append(UserCredential(result.user, mechanism, info.iterations))
    return sorted(found)


def set_password(
    client: ClusterClient,
    name: str,
    password: str,
    *,
    mechanism: str = DEFAULT_MECHANISM,
    iterations: int = DEFAULT_ITERATIONS,
) -> None:
    """Makes the user, or gives it another password."""
    asked = upsertion(name, password, mechanism=mechanism, iterations=iterations)
    _alter(client, AlterUserScramCredentialsRequest(upsertions=[asked]))


def upsertion(
    name: str, password: str, *, mechanism: str = DEFAULT_MECHANISM, iterations: int = DEFAULT_ITERATIONS
) -> ScramCredentialUpsertion:
    """What is sent for the password."""
    if not password:
        raise UserError("the password must not be empty")
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise UserError(f"the iterations must be {MIN_ITERATIONS} to {MAX_ITERATIONS}, not {iterations}")
    salt = os.urandom(SALT_BYTES)
    return ScramCredentialUpsertion(
        name=name,
        mechanism=_code(mechanism),
        iterations=iterations,
        salt=salt,
        salted_password=salted(mechanism, password, salt=salt, iterations=iterations),
    )


def remove_credential(client: ClusterClient, name: str, mechanism: str) -> None:
    deletion = ScramCredentialDeletion(name=name, mechanism=_code(mechanism))
    _alter(client, AlterUserScramCredentialsRequest(deletions=[deletion]))


def _alter(client: ClusterClient, request: AlterUserScramCredentialsRequest) -> None:
    answer = client.ask(request, AlterUserScramCredentialsResponse)
    for result in answer.results:
        if result.error_code:
            raise refused(result.error_code, result.error_message)


def _code(mechanism: str) -> int:
    if mechanism not in _CODES:
        raise UserError(f"the mechanism must be {' or '.join(_CODES)}, not {mechanism}")
    return _CODES[mechanism]
