"""Users' SCRAM credentials change: AlterUserScramCredentials. They are configs of users, as Kafka keeps them.

A user with any mistake in the request keeps all credentials as they are; others are not touched by it.
"""

from collections import Counter
from typing import Final

from penstock.controller.configs import notification
from penstock.controller.decision import Decision
from penstock.metadata import znodes
from penstock.metadata.image import USERS, Change, ClusterImage, ConfigsChanged
from penstock.metadata.tree import Create, Set, TreeOp
from penstock.model.errors import ApiError, ErrorCode
from penstock.security.scram import (
    MAX_ITERATIONS,
    MECHANISM_CODES,
    MIN_ITERATIONS,
    credential_of,
)
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

_Asked = ScramCredentialDeletion | ScramCredentialUpsertion
MAX_SALT_BYTES: Final = 1024
MAX_ALTERED: Final = 1000
"""In one request: it is decided in one step, while others wait."""


def alter_scram_credentials(
    image: ClusterImage, request: AlterUserScramCredentialsRequest, *, notify: bool
) -> Decision[AlterUserScramCredentialsResult]:
    asked: list[_Asked] = [*request.deletions, *request.upsertions]
    if len(asked) > MAX_ALTERED:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"More than {MAX_ALTERED} credentials in one request")
    times_named = Counter(each.name for each in asked)
    seen: set[str] = set()
    results: list[AlterUserScramCredentialsResult] = []
    ops: list[TreeOp] = []
    changes: list[Change] = []
    for each in asked:
        if each.name in seen:
            continue
        seen.add(each.name)
        try:
            if times_named[each.name] > 1:
                raise ApiError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            overrides = _altered(dict(image.overrides(USERS, each.name)), each)
        except ApiError as error:
            results.append(_result(each.name, error.code, error.detail))
            continue
        results.append(_result(each.name, ErrorCode.NONE, None))
        path, data = znodes.user_config_path(each.name), znodes.encode_config(overrides)
        ops.append(Set(path, data) if image.has_config_node(USERS, each.name) else Create(path, data))
        if notify:
            ops.append(notification(path))
        changes.append(ConfigsChanged(USERS, each.name, overrides))
    return Decision(results, ops, changes)


def _altered(overrides: dict[str, str], each: _Asked) -> dict[str, str]:
    """The user's configs afterwards; ApiError with Kafka's words."""
    if not each.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = MECHANISM_CODES.get(each.mechanism)
    if mechanism is None:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(each, ScramCredentialDeletion):
        if overrides.pop(mechanism, None) is None:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
            )
        return overrides
    if each.iterations < MIN_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if each.iterations > MAX_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    salt, salted = bytes(each.salt), bytes(each.salted_password)
    if not salt or not salted:
        raise ApiError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salt and the salted password must not be empty"
        )
    if len(salt) > MAX_SALT_BYTES:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salt is too long")
    overrides[mechanism] = str(credential_of(mechanism, salted, salt=salt, iterations=each.iterations))
    return overrides


def _result(user: str, code: ErrorCode, message: str | None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
