"""The servers of one cluster of the settings, made once and shared by all pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from penstock.client.errors import UserError
from penstock.console.upstream.connect import ConnectServer
from penstock.console.upstream.registry import RegistryServer
from penstock.console.upstream.sql import SqlCatalog

if TYPE_CHECKING:
    from penstock.console.context import ClusterHandle


@dataclass(frozen=True)
class Servers:
    """Clients only: nothing is connected before it is asked."""

    known_registry: RegistryServer | None
    connects: tuple[ConnectServer, ...]
    known_sql: SqlCatalog | None

    @property
    def registry(self) -> RegistryServer:
        if self.known_registry is None:
            raise UserError("no schema registry is known here; start the console with --schema-registry-url")
        return self.known_registry

    @property
    def sql(self) -> SqlCatalog:
        if self.known_sql is None:
            raise UserError("no SQL server is known here; start the console with --sql-url")
        return self.known_sql

    def connect(self, number: int = 0) -> ConnectServer:
        if not 0 <= number < len(self.connects):
            raise UserError("no such Connect cluster is known here; start the console with --connect-url")
        return self.connects[number]


_known: WeakKeyDictionary[ClusterHandle, Servers] = WeakKeyDictionary()


def servers(cluster: ClusterHandle) -> Servers:
    """UserError where an address of the settings cannot be used."""
    found = _known.get(cluster)
    if found is None:
        registry, sql = cluster.registry_url, cluster.sql_url
        found = Servers(
            RegistryServer(registry, _of_registry(cluster)) if registry else None,
            tuple(ConnectServer(each, authority=cluster.ca_file) for each in cluster.connect_urls),
            SqlCatalog(sql, authority=cluster.ca_file) if sql else None,
        )
        _known[cluster] = found
    return found


def _of_registry(cluster: ClusterHandle) -> dict[str, str]:
    return {name: value for name, value in cluster.properties.items() if name.startswith("schema.registry.")}
