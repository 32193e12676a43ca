"""Where a cluster and the services around it are, and how one comes in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from penstock.client.clients import Connection
from penstock.stack import brokers, connect, registry_address, secured, sql_server
from penstock.stack.stack import Stack

if TYPE_CHECKING:
    from penstock.client.connect_workers import ConnectWorkers
    from penstock.sql.client.service import SqlServer
    from penstock.stack.contents.schemas import Registry


@dataclass(frozen=True)
class Doors:
    """None: there is no such service."""

    connection: Connection
    registry_url: str | None = None
    connect_url: str | None = None
    sql_url: str | None = None
    login: tuple[str, str] | None = field(default=None, repr=False)
    authority: str | None = None
    """A PEM file: whom https trusts. None: whom this machine trusts."""
    registry_properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def registry(self) -> Registry:
        from penstock.stack.contents.schemas import Registry

        assert self.registry_url is not None
        given = dict(self.registry_properties)
        if self.login is not None:
            given["basic.auth.user.info"] = ":".join(self.login)
        if self.authority is not None:
            given["ssl.truststore.location"] = self.authority
        return Registry(self.registry_url, given)

    def workers(self) -> ConnectWorkers:
        from penstock.client.connect_workers import ConnectWorkers

        assert self.connect_url is not None
        url = self.connect_url
        if self.login is not None:
            scheme, _, rest = url.partition("://")
            user, password = (quote(word, safe="") for word in self.login)
            url = f"{scheme}://{user}:{password}@{rest}"
        return ConnectWorkers(url, authority=self.authority)

    def sql(self) -> SqlServer:
        import ssl

        from penstock.sql.client.service import SqlServer

        assert self.sql_url is not None
        user, password = self.login or (None, None)
        context = None
        if self.authority is not None:
            context = ssl.create_default_context(cafile=self.authority)
        return SqlServer(self.sql_url, user=user, password=password, context=context)


def doors_of(stack: Stack) -> Doors:
    """As the admin, where the stack asks who comes."""

    def url(service: str) -> str | None:
        members = stack.members_of(service)
        if not members:
            return None
        return f"{'https' if stack.is_secure else 'http'}://{stack.address_of(members[0])}"

    return Doors(
        brokers.connection_to(stack),
        registry_url=url(registry_address.NAME),
        connect_url=url(connect.NAME),
        sql_url=url(sql_server.NAME),
        login=secured.admin_login(stack) if stack.is_secure else None,
        authority=str(secured.authority_file(stack)) if stack.is_secure else None,
    )
