"""ACL operations as the bits that Metadata and DescribeCluster answer with."""

from typing import Final

(
    READ,
    WRITE,
    CREATE,
    DELETE,
    ALTER,
    DESCRIBE,
    CLUSTER_ACTION,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    IDEMPOTENT_WRITE,
) = range(3, 13)

NOT_ASKED: Final = -(2**31)
"""The answer to a client that did not ask what it may do."""


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


ALL_TOPIC_OPERATIONS: Final = _bits(
    READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS
)
ALL_CLUSTER_OPERATIONS: Final = _bits(
    CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE
)
