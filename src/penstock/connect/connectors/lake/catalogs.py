"""The catalog that a configuration names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import RESTError
from sqlalchemy.exc import SQLAlchemyError

from penstock.connect.connectors.lake.settings import CATALOG_PREFIX
from penstock.connect.errors import InvalidConfig, RetriableError

_TYPES: Final = {"jdbc": "sql"}
_CLASSES: Final = {
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql", "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.hive.HiveCatalog": "hive", "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
}  # fmt: skip
_DIALECTS: Final = {"postgresql": "postgresql+psycopg", "mariadb": "mysql+pymysql", "mysql": "mysql+pymysql"}


def catalog_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Of pyiceberg; Java's names are taken over. InvalidConfig."""
    found = {
        name.removeprefix(CATALOG_PREFIX): value
        for name, value in given.items()
        if name.startswith(CATALOG_PREFIX) and value
    }
    made_by = found.pop("catalog-impl", None)
    if made_by is not None and "type" not in found:
        if made_by not in _CLASSES:
            raise InvalidConfig(f"iceberg.catalog.catalog-impl: there is no catalog for {made_by}")
        found["type"] = _CLASSES[made_by]
    found["type"] = _TYPES.get(found.get("type", "sql"), found.get("type", "sql"))
    found.pop("io-impl", None)
    uri = found.get("uri", "")
    if uri.startswith("jdbc:"):
        found["uri"] = _sqlalchemy_url(uri, found.pop("jdbc.user", ""), found.pop("jdbc.password", ""))
    if not uri:
        raise InvalidConfig(
            'Missing required configuration "iceberg.catalog.uri" which has no default value.'
        )
    return found


def _sqlalchemy_url(url: str, user: str, password: str) -> str:
    kind, _, rest = url.removeprefix("jdbc:").partition(":")
    if kind == "sqlite":
        return f"sqlite:///{rest}"
    if kind not in _DIALECTS:
        raise InvalidConfig(f"iceberg.catalog.uri: there is no driver for jdbc:{kind}")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    return f"{_DIALECTS[kind]}://{login}{rest.removeprefix('//')}"


def catalog_of(name: str, given: Mapping[str, str]) -> Catalog:
    """InvalidConfig, RetriableError."""
    properties: dict[str, Any] = catalog_properties(given)
    with reaching("the catalog"):
        try:
            return load_catalog(name, **properties)
        except (ValueError, ImportError) as error:
            raise InvalidConfig(f"iceberg.catalog: {error}") from None


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """RetriableError where a database, a catalog or a store does not answer."""
    try:
        yield
    except (SQLAlchemyError, RESTError, OSError) as error:
        raise RetriableError(f"{what} cannot be reached: {error}") from error
