"""API 50 DescribeUserScramCredentials, version 0: The SCRAM users and their mechanisms, without secrets.

Not done: nothing that Kafka documents.
"""

from collections import Counter
from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.metadata.image import USERS, ClusterImage
from penstock.model.errors import ErrorCode
from penstock.security.scram import MECHANISM_CODES, parse_credential
from penstock.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithImage

REQUEST = DescribeUserScramCredentialsRequest
RESPONSE = DescribeUserScramCredentialsResponse
PORTIONS = (Portions(("users",), ("results",)),)


def handle(
    node: "WithImage", call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    image = node.image
    if not request.users:  # None, and as in Kafka also no name, ask for all
        everybody = sorted(image.configs.get(USERS, {}))
        found = [(name, _infos(image, name)) for name in everybody]
        results = [
            DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=infos)
            for name, infos in found
            if infos
        ]
        return DescribeUserScramCredentialsResponse(error_message=None, results=results)
    times_named = Counter(user.name for user in request.users)
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[_result(image, name, is_twice=times > 1) for name, times in times_named.items()],
    )


def _result(image: ClusterImage, name: str, *, is_twice: bool) -> DescribeUserScramCredentialsResult:
    infos = _infos(image, name)
    if is_twice:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
        )
    if not infos:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=infos)


def _infos(image: ClusterImage, name: str) -> list[CredentialInfo]:
    overrides = image.overrides(USERS, name)
    infos = []
    for code, mechanism in MECHANISM_CODES.items():
        try:
            if mechanism in overrides:
                iterations = parse_credential(overrides[mechanism]).iterations
                infos.append(CredentialInfo(mechanism=code, iterations=iterations))
        except ValueError:
            continue
    return infos


def refuse(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode, detail: str | None
) -> DescribeUserScramCredentialsResponse:
    """As in Kafka, a result for each user, without its name."""
    return DescribeUserScramCredentialsResponse(
        error_code=code,
        error_message=detail,
        results=[
            DescribeUserScramCredentialsResult(error_code=code, error_message=detail)
            for _ in request.users or ()
        ],
    )
