"""The settings of a console, as the rest of it sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.console.access.masking import MaskingRule
from penstock.console.access.roles import BUILT_IN, Role
from penstock.web.users_file import User

NONE, START, USERS, SCRAM, OIDC = "none", "start", "users", "scram", "oidc"
LOGINS: Final = (NONE, START, USERS, SCRAM, OIDC)


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    name: str
    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of Kafka's clients, by Kafka's names. Those with `schema.registry.` in front are for the registry."""
    registry_url: str | None = None
    connect_urls: tuple[str, ...] = ()
    sql_url: str | None = None
    spark_urls: tuple[str, ...] = ()
    """Pages of metrics of Spark's drivers, as `penstock.spark.show_progress(spark, port=9405)` serves them."""
    ca_file: str | None = None
    """PEM: whom https of the registry, Connect and the SQL server is trusted by; None: whom this machine trusts."""


@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    """Not needed for a public client: PKCE is always used."""
    provider: str = "OpenID"
    """What the button says."""
    scopes: tuple[str, ...] = ("openid", "profile")
    name_claim: str = "preferred_username"
    """`sub` is taken where a token does not have it."""
    roles_claim: str = ""
    """A claim with names of roles, or of what `roles_of` knows: `groups`, or `realm_access.roles`."""


@dataclass(frozen=True, kw_only=True)
class LoginSettings:
    method: str = START
    users: Mapping[str, User] = field(default_factory=dict, repr=False)
    users_file: str = ""
    scram_cluster: str = ""
    scram_mechanism: str = "SCRAM-SHA-512"
    oidc: OidcSettings | None = None
    roles_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of roles by the name of a visitor, or of a group in the claim of roles; `*` is everybody who has logged in."""
    idle_minutes: int = 8 * 60
    max_hours: int = 24


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    topic: str = ""
    """Nothing: the log of the process is the only place."""
    cluster: str = ""


@dataclass(frozen=True, kw_only=True)
class HistorySettings:
    file: Path | None = None
    """None: in memory, and gone with the process."""
    keep_hours: int = 24 * 7
    max_rows: int = 2_000_000


@dataclass(frozen=True, kw_only=True)
class ConsoleSettings:
    clusters: tuple[ClusterSettings, ...]
    login: LoginSettings = field(default_factory=LoginSettings)
    roles: Mapping[str, Role] = field(default_factory=lambda: dict(BUILT_IN))
    masking: tuple[MaskingRule, ...] = ()
    audit: AuditSettings = field(default_factory=AuditSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    public_url: str = ""
    """How browsers reach it, where that is not its own address: `https://console.example.com` behind a proxy."""
    snapshot_seconds: int = 5
