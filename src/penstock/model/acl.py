"""Access rules (ACLs): Kafka's codes, a rule, and the sets of operations that answers hold as bits."""

from enum import IntEnum
from typing import Final, NamedTuple


class ResourceType(IntEnum):
    """Kafka's codes. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """Kafka's codes. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PatternType(IntEnum):
    """Kafka's codes. ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Kafka's codes. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def shown(code: IntEnum) -> str:
    """As Kafka's nodes and tools name it: `TransactionalId`, `Read`."""
    return "".join(word.capitalize() for word in code.name.split("_"))


ANY_NAME: Final = "*"
"""As the name of a literal pattern: all resources of the type. As a rule's host: all hosts."""
ANY_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The only resource of type CLUSTER."""


class Pattern(NamedTuple):
    """Which resources a rule is about: the one of this name, those whose names begin with it, or all (`ANY_NAME`)."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


class Rule(NamedTuple):
    """Who may, or may not, do what from where."""

    principal: str
    """`User:alice`, or `ANY_PRINCIPAL`."""
    host: str
    """An address, or `ANY_NAME`."""
    operation: Operation
    permission: Permission


TYPES: Final = tuple(each for each in ResourceType if each > ResourceType.ANY)
ALL_OPERATIONS: Final = tuple(each for each in Operation if each > Operation.ANY)
PERMISSIONS: Final = (Permission.DENY, Permission.ALLOW)

NOT_ASKED: Final = -(2**31)
"""The answer to a client that did not ask what it may do."""

# What can be done to a resource of each type, as Kafka lists it.
OPERATIONS: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}  # fmt: skip


def as_bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


ALL_TOPIC_OPERATIONS: Final = as_bits(*OPERATIONS[ResourceType.TOPIC])
ALL_GROUP_OPERATIONS: Final = as_bits(*OPERATIONS[ResourceType.GROUP])
ALL_CLUSTER_OPERATIONS: Final = as_bits(*OPERATIONS[ResourceType.CLUSTER])
