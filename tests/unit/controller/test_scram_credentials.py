"""What AlterUserScramCredentials takes and refuses, in Kafka's words."""

from __future__ import annotations

import pytest

from penstock.controller.scram_credentials import alter_scram_credentials
from penstock.metadata.image import USERS, ClusterImage
from penstock.model.errors import ErrorCode
from penstock.security.scram import parse_credential
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

SHA256, SHA512 = 1, 2
TWICE = "A user credential cannot be altered twice in the same request"


def made(name: str, mechanism: int = SHA512, **more: object) -> ScramCredentialUpsertion:
    given: dict[str, object] = {"iterations": 4096, "salt": b"salt", "salted_password": b"x" * 64, **more}
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, **given)  # type: ignore[arg-type]


def gone(name: str, mechanism: int = SHA512) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def altered(
    image: ClusterImage,
    *upsertions: ScramCredentialUpsertion,
    deletions: tuple[ScramCredentialDeletion, ...] = (),
) -> list[tuple[str, int, str | None]]:
    """What each user is told; the image has it then."""
    request = AlterUserScramCredentialsRequest(upsertions=upsertions, deletions=deletions)
    decision = alter_scram_credentials(image, request, notify=False)
    image.apply_all(decision.changes)
    return [(result.user, result.error_code, result.error_message) for result in decision.results]


def mechanisms(image: ClusterImage, name: str) -> set[str]:
    return set(image.overrides(USERS, name))


def test_two_mechanisms_of_one_user_are_two_requests() -> None:
    """Kafka refuses them together, and others of the request are made all the same."""
    image = ClusterImage()
    told = altered(image, made("ana", SHA256), made("ana", SHA512), made("bob"))
    assert told == [("ana", ErrorCode.DUPLICATE_RESOURCE, TWICE), ("bob", 0, None)]
    assert not mechanisms(image, "ana")
    assert altered(image, made("ana", SHA256)) == altered(image, made("ana", SHA512)) == [("ana", 0, None)]
    assert mechanisms(image, "ana") == {"SCRAM-SHA-256", "SCRAM-SHA-512"}


def test_a_change_and_a_removal_of_one_user_are_two_requests() -> None:
    image = ClusterImage()
    altered(image, made("ana"))
    told = altered(image, made("ana", SHA256), deletions=(gone("ana"),))
    assert told == [("ana", ErrorCode.DUPLICATE_RESOURCE, TWICE)]
    assert mechanisms(image, "ana") == {"SCRAM-SHA-512"}


def test_a_removal_takes_one_mechanism() -> None:
    image = ClusterImage()
    altered(image, made("ana", SHA256))
    altered(image, made("ana", SHA512))
    assert altered(image, deletions=(gone("ana"),)) == [("ana", 0, None)]
    assert mechanisms(image, "ana") == {"SCRAM-SHA-256"}
    ((_, code, _),) = altered(image, deletions=(gone("ana"),))
    assert code == ErrorCode.RESOURCE_NOT_FOUND


def test_no_password_is_kept() -> None:
    image = ClusterImage()
    altered(image, made("ana", salted_password=b"p" * 64))
    text = image.overrides(USERS, "ana")["SCRAM-SHA-512"]
    assert parse_credential(text).iterations == 4096
    assert b"p" * 64 not in text.encode()
    names = {part.partition("=")[0] for part in text.split(",")}
    assert names == {"salt", "stored_key", "server_key", "iterations"}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (made(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (made("ana", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (made("ana", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (made("ana", salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (made("ana", salted_password=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (made("ana", mechanism=7), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_what_cannot_be_is_refused(asked: ScramCredentialUpsertion, code: ErrorCode) -> None:
    image = ClusterImage()
    ((_, told, _),) = altered(image, asked)
    assert told == code
    assert not mechanisms(image, asked.name)
