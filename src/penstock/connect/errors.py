"""What goes wrong in connectors, converters and transforms, with the names under which Kafka Connect tells it."""

from __future__ import annotations

from typing import ClassVar


class ConnectError(Exception):
    """A task that raises it fails; it is started again after a pause (`errors.restart.…`)."""

    java_name: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"


class RetriableError(ConnectError):
    """Raised by `SinkTask.put` or `SourceTask.poll` where the same call may succeed a little later: it is made again."""

    java_name = "org.apache.kafka.connect.errors.RetriableException"


class DataError(ConnectError):
    """A value is not what its schema says, or cannot be converted."""

    java_name = "org.apache.kafka.connect.errors.DataException"


class SchemaError(DataError):
    """A schema that cannot be."""

    java_name = "org.apache.kafka.connect.errors.SchemaBuilderException"


class Hopeless(ConnectError):
    """No restart will help (a wrong password, a table that cannot hold the records): the task stays failed until somebody
    restarts it."""


class InvalidConfig(Exception):
    """A configuration that cannot be used; the text is for the person who wrote it."""

    java_name: ClassVar[str] = "org.apache.kafka.common.config.ConfigException"


def java_name_of(error: BaseException) -> str:
    """The class that Kafka Connect would name; for others the name of the Python class."""
    found = getattr(type(error), "java_name", None)
    if isinstance(found, str):
        return found
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
