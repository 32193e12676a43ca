"""What `--config-file` says: properties of statements, and how the server is reached. A client's file says that, too."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from penstock.client.errors import BadOption
from penstock.client.properties import SECURITY_NAMES
from penstock.client.property_files import read_properties


@dataclass(frozen=True, slots=True)
class Configured:
    properties: Mapping[str, str] = field(default_factory=dict)
    login: tuple[str | None, str | None] = field(default=(None, None), repr=False)
    context: ssl.SSLContext | None = None

    @classmethod
    def read(cls, path: str) -> Self:
        """BadOption for stores and logins that cannot be used."""
        found = read_properties(path)
        reaching = {name: found.pop(name) for name in list(found) if name in SECURITY_NAMES}
        found.pop("bootstrap.servers", None)
        return cls(found, _login(reaching), _context(reaching))


def _login(given: Mapping[str, str]) -> tuple[str | None, str | None]:
    from penstock.security.jaas import BadJaas, parse_login

    line = given.get("sasl.jaas.config")
    if line is None:
        return given.get("sasl.username"), given.get("sasl.password")
    try:
        options = parse_login(line).options
    except BadJaas as error:
        raise BadOption(f"sasl.jaas.config: {error}") from None
    return options.get("username"), options.get("password")


def _context(given: Mapping[str, str]) -> ssl.SSLContext | None:
    from penstock.client.security import security_of

    stores = {name: value for name, value in given.items() if name.startswith("ssl.")}
    return security_of({"security.protocol": "SSL", **stores}).tls_context if stores else None
