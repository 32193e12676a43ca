"""The connection to Redis, and what its errors mean for a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from redis import Redis, RedisCluster
from redis import exceptions as errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from penstock.connect.errors import ConnectError, Hopeless, InvalidConfig, RetriableError
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least

_AWAY: Final = (
    errors.ConnectionError,
    errors.TimeoutError,
    errors.BusyLoadingError,
    errors.TryAgainError,
    OSError,
)
_AWAY_WORDS: Final = (
    "OOM",
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "TRYAGAIN",
)
_HOPELESS: Final = (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError)

CONNECTION: Final = Settings(
    Setting("redis.uri", Kind.STRING, "redis://host:port/database, or rediss:// with TLS; stands over host and port.",
            default=None, importance=HIGH),
    Setting("redis.host", Kind.STRING, "The server.", default="localhost"),
    Setting("redis.port", Kind.INT, "Its port.", default=6379),
    Setting("redis.database", Kind.INT, "The number of the database.", default=0, check=at_least(0), importance=LOW),
    Setting("redis.username", Kind.STRING, "The login's name.", default=None),
    Setting("redis.password", Kind.PASSWORD, "The login's password.", default=None),
    Setting("redis.tls", Kind.BOOLEAN, "Whether to speak TLS.", default=False),
    Setting("redis.insecure", Kind.BOOLEAN, "Takes any certificate.", default=False, importance=LOW),
    Setting("redis.cluster", Kind.BOOLEAN, "Whether the server is one of a cluster.", default=False),
    Setting("redis.timeout", Kind.LONG, "How long an answer may take, in seconds.", default=60, check=at_least(1),
            importance=LOW),
)  # fmt: skip


def connect(values: Mapping[str, Any]) -> Any:
    """A client; it connects with the first command. InvalidConfig."""
    more: dict[str, Any] = {
        "socket_timeout": values["redis.timeout"],
        "socket_connect_timeout": values["redis.timeout"],
    }
    if values["redis.username"]:
        more["username"] = values["redis.username"]
    if values["redis.password"]:
        more["password"] = values["redis.password"]
    is_secure = values["redis.tls"] or (values["redis.uri"] or "").startswith("rediss://")
    if values["redis.insecure"] and is_secure:
        more |= {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
    uri = values["redis.uri"]
    if uri and is_secure:
        uri = uri.replace("redis://", "rediss://", 1)
    try:
        if values["redis.cluster"]:
            made: type[Any] = RedisCluster
        else:
            made, more["retry"] = Redis, Retry(NoBackoff(), 0)
        if uri:
            return made.from_url(uri, **more)
        if not values["redis.cluster"]:
            more["db"] = values["redis.database"]
        return made(host=values["redis.host"], port=values["redis.port"], ssl=bool(is_secure), **more)
    except ValueError as error:
        raise InvalidConfig(f"redis.uri: {error}") from None
    except errors.RedisError as error:
        raise failure_of(error) from error


def failure_of(error: BaseException) -> ConnectError:
    if isinstance(error, _HOPELESS):
        return Hopeless(f"Redis refuses the login: {error}")
    if is_away(error):
        return RetriableError(f"Redis: {error or type(error).__name__}")
    if "unknown command" in str(error).lower():
        return Hopeless(f"This Redis has no such command: {error}")
    return ConnectError(f"Redis: {error}")


def is_away(error: BaseException) -> bool:
    return (isinstance(error, _AWAY) and not isinstance(error, _HOPELESS)) or str(error).startswith(
        _AWAY_WORDS
    )


@contextmanager
def failures() -> Iterator[None]:
    """Errors of the driver become a task's."""
    try:
        yield
    except ConnectError:
        raise
    except (errors.RedisError, OSError) as error:
        raise failure_of(error) from error
