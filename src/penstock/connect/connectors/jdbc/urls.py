"""`connection.url` as JDBC has it, or as SQLAlchemy does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from penstock.connect.errors import InvalidConfig
from penstock.connect.settings import Settings

_DRIVERS: Final[Mapping[str, str]] = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "sqlite": "sqlite",
}
_PORTS: Final = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
_POSTGRESQL_NAMES: Final = {
    "sslmode": "sslmode", "sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey",
    "ApplicationName": "application_name", "options": "options", "connectTimeout": "connect_timeout",
    "application_name": "application_name", "connect_timeout": "connect_timeout",
}  # fmt: skip
_MYSQL_NAMES: Final = {
    "serverSslCert": "ssl_ca", "ssl_ca": "ssl_ca", "ssl_cert": "ssl_cert", "ssl_key": "ssl_key", "charset": "charset",
    "connect_timeout": "connect_timeout",
}  # fmt: skip


def url_of(text: str, user: str | None = None, password: str | None = None, dialect: str = "") -> URL:
    """InvalidConfig. `user` and `password` stand over those in the URL; `dialect` over the one it begins with."""
    text = text.strip()
    try:
        url = _of_jdbc(text.removeprefix("jdbc:")) if text.startswith("jdbc:") else make_url(text)
    except (ArgumentError, ValueError):
        # Not what is wrong in it: there may be a password.
        raise InvalidConfig(
            f"Invalid value {_without_password(text)} for configuration connection.url: it must be like "
            "jdbc:postgresql://host:5432/database"
        ) from None
    name = _dialect_of(dialect) or url.get_backend_name()
    if name not in _DRIVERS:
        known = "postgresql, mysql, mariadb, sqlite"
        raise InvalidConfig(f"connection.url: there is no dialect {name}; there are: {known}")
    url = url.set(drivername=_DRIVERS[name])
    if user:
        url = url.set(username=user)
    if password:
        url = url.set(password=password)
    return url


def _dialect_of(name: str) -> str:
    """PostgreSqlDatabaseDialect, as the Java connectors name it, is postgresql."""
    short = name.removesuffix("DatabaseDialect").lower()
    return {"postgres": "postgresql"}.get(short, short)


def _of_jdbc(text: str) -> URL:
    scheme, _, rest = text.partition(":")
    if scheme == "sqlite":
        path, _, _ = rest.partition("?")
        return URL.create("sqlite", database=path or None)
    if scheme not in _DRIVERS:
        return URL.create(scheme or "none")
    place, _, words = rest.removeprefix("//").partition("?")
    hosts, _, database = place.partition("/")
    login, _, hosts = hosts.rpartition("@")
    user, _, password = login.partition(":")
    host, port = _first_host(hosts)
    given = dict(parse_qsl(words, keep_blank_values=True))
    backend = "postgresql" if scheme.startswith("postgres") else scheme
    return URL.create(
        scheme,
        username=given.get("user") or unquote(user) or None,
        password=given.get("password") or unquote(password) or None,
        host=host or "localhost",
        port=port or _PORTS.get(backend),
        database=unquote(database) or None,
        query=_query_of(backend, given),
    )


def _first_host(hosts: str) -> tuple[str, int | None]:
    first = hosts.split(",")[0]
    if first.startswith("["):
        host, _, rest = first[1:].partition("]")
        return host, int(rest[1:]) if rest.startswith(":") else None
    host, _, port = first.partition(":")
    return host, int(port) if port else None


def _query_of(backend: str, given: Mapping[str, str]) -> dict[str, str]:
    """What the driver here has, too; the others are the Java driver's own."""
    names = _POSTGRESQL_NAMES if backend == "postgresql" else _MYSQL_NAMES
    found = {names[name]: value for name, value in given.items() if name in names}
    if backend == "postgresql":
        if given.get("currentSchema"):
            option = f"-csearch_path={given['currentSchema']}"
            found["options"] = f"{found['options']} {option}" if "options" in found else option
        if given.get("ssl", "").lower() == "true":
            found.setdefault("sslmode", "require")
    return found


def _without_password(text: str) -> str:
    return text.split("?")[0].split("@")[-1]


def checked(
    table: Settings,
    given: Mapping[str, str],
    mistakes_of: Callable[[Mapping[str, Any]], dict[str, list[str]]],
    choices_of: Callable[[Mapping[str, Any]], object],
) -> Mapping[str, Sequence[str]]:
    """Of a source or a sink: what their tables of settings cannot tell."""
    try:
        values = table.parse(given)
    except InvalidConfig:
        return {}  # the table has told it
    found = mistakes_of(values)
    for name, try_out in (("connection.url", _url_of_all), ("db.timezone", choices_of)):
        try:
            try_out(values)
        except InvalidConfig as error:
            found[name] = [str(error)]
    return found


def _url_of_all(values: Mapping[str, Any]) -> object:
    return url_of(
        values["connection.url"],
        values["connection.user"],
        values["connection.password"],
        values["dialect.name"],
    )
