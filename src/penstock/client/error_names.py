"""The Java exception that Kafka's own tools name for an error code, and the words that come with it where a tool prints them."""

from penstock.client.errors import Refused
from penstock.model.errors import ErrorCode

PACKAGE = "org.apache.kafka.common.errors."

# Most names follow from the code's; these do not.
IRREGULAR = {
    "UNKNOWN_SERVER_ERROR": "UnknownServerException",
    "CORRUPT_MESSAGE": "CorruptRecordException",
    "REQUEST_TIMED_OUT": "TimeoutException",
    "MESSAGE_TOO_LARGE": "RecordTooLargeException",
    "STALE_CONTROLLER_EPOCH": "ControllerMovedException",
    "OFFSET_METADATA_TOO_LARGE": "OffsetMetadataTooLarge",
    "RECORD_LIST_TOO_LARGE": "RecordBatchTooLargeException",
    "TOPIC_AUTHORIZATION_FAILED": "TopicAuthorizationException",
    "GROUP_AUTHORIZATION_FAILED": "GroupAuthorizationException",
    "CLUSTER_AUTHORIZATION_FAILED": "ClusterAuthorizationException",
    "TOPIC_ALREADY_EXISTS": "TopicExistsException",
    "INVALID_CONFIG": "InvalidConfigurationException",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "OutOfOrderSequenceException",
    "DUPLICATE_SEQUENCE_NUMBER": "DuplicateSequenceException",
    "KAFKA_STORAGE_ERROR": "KafkaStorageException",
    "SASL_AUTHENTICATION_FAILED": "SaslAuthenticationException",
    "DELEGATION_TOKEN_AUTH_DISABLED": "DelegationTokenDisabledException",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": "DelegationTokenAuthorizationException",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "UnsupportedByAuthenticationException",
    "NON_EMPTY_GROUP": "GroupNotEmptyException",
    "INVALID_PRODUCER_ID_MAPPING": "InvalidPidMappingException",
    "INVALID_TRANSACTION_TIMEOUT": "InvalidTxnTimeoutException",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "TransactionalIdAuthorizationException",
    "INVALID_REGULAR_EXPRESSION": "InvalidRegularExpression",
}

# What Kafka's client says where the broker sent a code and no message.
DETAILS = {
    ErrorCode.OFFSET_OUT_OF_RANGE: "The requested offset is not within the range of offsets maintained by the server.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNSUPPORTED_VERSION: "The version of API is not supported.",
    ErrorCode.POLICY_VIOLATION: "Request parameters do not satisfy the configured policy.",
    ErrorCode.KAFKA_STORAGE_ERROR: "Disk error when trying to access log file on the disk.",
    ErrorCode.MESSAGE_TOO_LARGE: (
        "The request included a message larger than the max message size the server will accept."
    ),
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token "
        "authenticated channels."
    ),
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
    ),
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found.",
    ErrorCode.INVALID_PRODUCER_EPOCH: "Producer attempted to produce with an old epoch.",
    ErrorCode.INVALID_TXN_STATE: "The producer attempted a transactional operation in an invalid state.",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: (
        "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the current coordinator "
        "for a given producer."
    ),
}


def error_name(code: int) -> str:
    """Such as `TOPIC_ALREADY_EXISTS`."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def exception_name(code: int) -> str:
    """The class name alone, such as `TopicExistsException`."""
    name = error_name(code)
    if name.startswith("error "):
        return "KafkaException"
    regular = "".join(part.capitalize() for part in name.split("_"))
    return IRREGULAR.get(name) or (regular if regular.endswith("Exception") else regular + "Exception")


def full_exception_name(code: int) -> str:
    return PACKAGE + exception_name(code)


def detail(code: int, given: str | None = None) -> str:
    """What the broker said, or else what Kafka's client would."""
    if given:
        return given
    name = error_name(code)
    if name.startswith("error "):
        return name
    return DETAILS.get(ErrorCode(code)) or name.replace("_", " ").capitalize() + "."


def refused(code: int, message: str | None = None) -> Refused:
    """The error that a broker answered, named as Kafka's tools name it."""
    return Refused(detail(code, message), code=code, exception_name=full_exception_name(code))
