"""API 36 SaslAuthenticate, versions 0–2: One step of a SASL login, or of re-authentication.

From version 1 on the last answer says for how long the login is good. A failure is answered late, and the connection is closed
behind it.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater
from penstock.model.errors import ErrorCode
from penstock.security.sasl import LoginFailed
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from penstock.broker.access.logins import Login

REQUEST = SaslAuthenticateRequest
RESPONSE = SaslAuthenticateResponse


def handle(
    node: object, call: Call, request: SaslAuthenticateRequest
) -> NowOrLater[SaslAuthenticateResponse]:
    login = call.connection.login
    if login is None or login.is_settled:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    try:
        answer = login.step(call.connection, bytes(request.auth_bytes))
    except LoginFailed as failure:
        return Later(_refused(call, login, failure))
    return Later(_later(call, login, answer)) if isinstance(answer, Later) else _answered(login, answer)


def _answered(login: "Login", answer: bytes) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        auth_bytes=answer, error_message=None, session_lifetime_ms=login.lifetime_ms
    )


async def _later(call: Call, login: "Login", answer: Later[bytes]) -> SaslAuthenticateResponse:
    try:
        return _answered(login, await answer)
    except LoginFailed as failure:
        return await _refused(call, login, failure)


async def _refused(call: Call, login: "Login", failure: LoginFailed) -> SaslAuthenticateResponse:
    await login.refuse(call.connection, failure)
    return SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(failure)
    )
