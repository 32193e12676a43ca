"""API 17 SaslHandshake, versions 0–1: A client names its SASL mechanism.

A mechanism that is not offered ends the connection behind the answer. After version 0 the client's tokens come as frames without
a header; after version 1 as SaslAuthenticate requests. On a listener without logins it is out of place, and so it is when the
client is in and its login has no end.
Not done: nothing that Kafka documents.
"""

from penstock.broker.requests.call import Call
from penstock.model.errors import ErrorCode
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

REQUEST = SaslHandshakeRequest
RESPONSE = SaslHandshakeResponse


def handle(node: object, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    login = call.connection.login
    if login is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    code, mechanisms = login.handshake(call.connection, request.mechanism, call.api_version)
    return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
