"""Options from environment variables, by the rule of Apache Kafka's container image.

The prefix goes, letters become small, and underscores are signs: `_` is a dot, `__` an underscore, `___` a hyphen. So
`KAFKA_LOG_RETENTION_MS` is `log.retention.ms`. Variables that Kafka's image keeps for the JVM and for logging are no options.
"""

from collections.abc import Mapping
from typing import Final

_NO_OPTIONS: Final = frozenset({
    "VERSION", "OPTS", "HEAP_OPTS", "JVM_PERFORMANCE_OPTS", "GC_LOG_OPTS", "JMX_OPTS", "JMX_HOSTNAME", "JMX_PORT",
    "LOG4J_OPTS", "LOG4J_ROOT_LOGLEVEL", "LOG4J_LOGGERS", "TOOLS_LOG4J_LOGLEVEL",
})  # fmt: skip


def options_in(variables: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The options that `variables` set. An empty value counts: it may take back what a file says."""
    return {
        option_name(name.removeprefix(prefix)): value
        for name, value in variables.items()
        if name.startswith(prefix) and name.removeprefix(prefix) not in _NO_OPTIONS and name != prefix
    }


def option_name(variable: str) -> str:
    """`NUM_PARTITIONS` gives `num.partitions`. The longest row of underscores is taken first."""
    return variable.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
