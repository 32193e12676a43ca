"""What an error is over HTTP: Kafka REST's codes and words, for what the cluster, its clients or a request's body is to blame."""

from __future__ import annotations

from typing import Any, Final

from penstock.client.errors import NoSuchGroup, NoSuchTopic, Refused, Unreachable, UserError
from penstock.client.librdkafka_calls import NOT_DELIVERED_NAMES
from penstock.model.errors import RETRIABLE, ErrorCode
from penstock.web.errors import HttpError

BAD_REQUEST, AUTHENTICATION, AUTHORIZATION = 40002, 40101, 40301
UNKNOWN_IN_CLUSTER, KAFKA_ERROR, KAFKA_RETRIABLE, NOT_AVAILABLE = 40403, 50002, 50003, 50302

_BAD_REQUESTS: Final = frozenset(
    {
        ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_PARTITIONS, ErrorCode.INVALID_REQUEST,
        ErrorCode.POLICY_VIOLATION, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_CONFIG,
        ErrorCode.UNSUPPORTED_VERSION, ErrorCode.SECURITY_DISABLED, ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_PRINCIPAL_TYPE,
    }
)  # fmt: skip
_UNKNOWN: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.GROUP_ID_NOT_FOUND}
)
_NOT_LET_IN: Final = frozenset(
    {ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.ILLEGAL_SASL_STATE}
)
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
TOO_LARGE: Final = 413
_NOT_ALLOWED: Final = frozenset(code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED"))


def topic_not_found() -> HttpError:
    return HttpError(404, "Topic not found.", error_code=40401)


def partition_not_found() -> HttpError:
    return HttpError(404, "Partition not found.", error_code=40402)


def instance_not_found() -> HttpError:
    return HttpError(404, "Consumer instance not found.", error_code=40403)


def leader_not_available() -> HttpError:
    return HttpError(404, "Leader not available.", error_code=40404)


def format_mismatch() -> HttpError:
    return HttpError(
        406,
        "The requested embedded data format does not match the deserializer for this consumer instance",
        error_code=40601,
    )


def instance_exists() -> HttpError:
    return HttpError(
        409,
        "Consumer with specified consumer ID already exists in the specified consumer group.",
        error_code=40902,
    )


def illegal_state(why: str) -> HttpError:
    return HttpError(409, f"Illegal state: {why}", error_code=40903)


def too_many_instances(limit: int) -> HttpError:
    return HttpError(
        429,
        f"This proxy holds {limit} consumer instances already (penstock.consumer.instance.limit); delete some first.",
        error_code=42901,
    )


def key_schema_missing() -> HttpError:
    return HttpError(422, "Request includes keys but does not include key schema", error_code=42201)


def value_schema_missing() -> HttpError:
    return HttpError(422, "Request includes values but does not include value schema", error_code=42202)


def conversion_failed(why: str) -> HttpError:
    return HttpError(422, f"Conversion of JSON to Object failed: {why}", error_code=42203)


def invalid_consumer_config(why: str) -> HttpError:
    return HttpError(422, f"Invalid consumer configuration: {why}", error_code=42204)


def consumer_config_out_of_bounds(why: str) -> HttpError:
    return HttpError(
        400,
        f"Invalid consumer configuration. It does not abide by the constraints: {why}",
        error_code=40001,
    )


def invalid_schema(why: str) -> HttpError:
    return HttpError(422, f"Invalid schema: {why}", error_code=42205)


def invalid_payload(why: str) -> HttpError:
    return HttpError(422, f"Payload error. {why}", error_code=42206)


def serialization_failed(why: str) -> HttpError:
    return HttpError(422, f"Error serializing message. {why}", error_code=42207)


def bad_batch(why: str) -> HttpError:
    return HttpError(422, why, error_code=42208)


def bad_request(why: str) -> HttpError:
    return HttpError(400, why)


def not_logged_in(why: str, *, scheme: str = "Basic") -> HttpError:
    return HttpError(
        401, why, error_code=AUTHENTICATION, headers={"WWW-Authenticate": f'{scheme} realm="penstock"'}
    )


def not_allowed(why: str) -> HttpError:
    return HttpError(403, why, error_code=AUTHORIZATION)


def refusal(error: Exception) -> HttpError | None:
    """How an error of the cluster is answered; None: it is a bug."""
    if isinstance(error, NoSuchTopic):
        return HttpError(
            404, "This server does not host this topic-partition.", error_code=UNKNOWN_IN_CLUSTER
        )
    if isinstance(error, NoSuchGroup):
        return HttpError(404, "The group id does not exist.", error_code=UNKNOWN_IN_CLUSTER)
    if isinstance(error, Refused):
        return of_code(error.code, str(error))
    if isinstance(error, Unreachable):
        if is_login_failure(error):
            return not_logged_in(str(error))
        return HttpError(503, f"Broker not available: {error}", error_code=NOT_AVAILABLE)
    if isinstance(error, UserError):
        return HttpError(400, str(error), error_code=BAD_REQUEST)
    return None


def is_login_failure(error: Unreachable) -> bool:
    """The client's errors have no class of their own for it, only these words (`client.login`, `clients.translated`)."""
    text = str(error)
    return "(option sasl." in text or "does not let us in" in text


def of_code(code: int, message: str) -> HttpError:
    """The error of a broker or of librdkafka, whose own codes are below zero."""
    if code in _NOT_LET_IN:
        return not_logged_in(message)
    if code in _NOT_ALLOWED:
        return HttpError(403, message, error_code=AUTHORIZATION)
    if code in _UNKNOWN:
        return HttpError(404, message, error_code=UNKNOWN_IN_CLUSTER)
    if code in _TOO_LARGE:
        return HttpError(TOO_LARGE, message)
    if code in _BAD_REQUESTS:
        return HttpError(400, message, error_code=BAD_REQUEST)
    if code in RETRIABLE:
        return HttpError(500, message, error_code=KAFKA_RETRIABLE)
    return kafka_error(message)


def kafka_error(message: str) -> HttpError:
    return HttpError(500, f"Kafka error: {message}", error_code=KAFKA_ERROR)


def refused_record_code(code: int) -> int:
    """Of a record that was refused before it was sent."""
    if code in _NOT_LET_IN:
        return AUTHENTICATION
    if code in _NOT_ALLOWED:
        return AUTHORIZATION
    return KAFKA_RETRIABLE if code in RETRIABLE else KAFKA_ERROR


def record_error_code(error: Any) -> int:
    """Of a KafkaError that a record got: what v2's answer says about it."""
    code = error.code()
    if code in _NOT_LET_IN or error.name() == "_AUTHENTICATION":
        return AUTHENTICATION
    if code in _NOT_ALLOWED:
        return AUTHORIZATION
    if error.retriable() or code in RETRIABLE or error.name() in _RETRIABLE_NAMES:
        return KAFKA_RETRIABLE
    return KAFKA_ERROR


def stream_error_code(error: Any) -> int:
    """The same for v3."""
    return TOO_LARGE if error.code() in _TOO_LARGE else record_error_code(error)


_RETRIABLE_NAMES: Final = NOT_DELIVERED_NAMES
