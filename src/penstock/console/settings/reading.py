"""From `console.yaml` and the command line to `ConsoleSettings`. Each mistake is one line that names the place."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from penstock.client.errors import BadOption, UserError
from penstock.client.property_files import read_properties, read_text
from penstock.console.access.actions import Action
from penstock.console.access.masking import HOWS, BadPath, MaskingRule, parse_path
from penstock.console.access.roles import BUILT_IN, EVERYTHING, Grant, Role
from penstock.console.settings.document import Section, parse
from penstock.console.settings.model import (
    LOGINS,
    NONE,
    OIDC,
    SCRAM,
    START,
    USERS,
    AuditSettings,
    ClusterSettings,
    ConsoleSettings,
    HistorySettings,
    LoginSettings,
    OidcSettings,
)
from penstock.web.users_file import User, parse_users

RESERVED: Final = frozenset({"login", "logout", "health", "metrics", "docs", "openapi.json", "favicon.ico"})
"""Addresses of the console itself."""
DEFAULT_BOOTSTRAP: Final = "localhost:9092"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ROLE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


class Read:
    """The settings, and what of the file is for the web frame: listeners, certificates and so on by their own names."""

    def __init__(self, settings: ConsoleSettings, web: Mapping[str, str]) -> None:
        self.settings, self.web = settings, web


def read_settings(path: str) -> Read:
    """UserError for what cannot be read or cannot be meant."""
    return settings_of(read_text(path), file=path, environment=os.environ)


def settings_of(text: str, *, file: str, environment: Mapping[str, str]) -> Read:
    document = parse(text, file=file, environment=environment)
    folder = Path(file).parent
    clusters = tuple(_cluster(each, folder) for each in document.sections("clusters"))
    if not clusters:
        raise document.place.mistake("clusters: at least one must be given, with its name and bootstrap")
    names = [each.name for each in clusters]
    for name in names:
        if names.count(name) > 1:
            raise document.place_of("clusters").mistake(f"two clusters have the name {name}")
    roles = dict(BUILT_IN) | _roles(document)
    login = document.section("login")
    web = document.section("web")
    settings = ConsoleSettings(
        clusters=clusters,
        login=LoginSettings() if login is None else _login(login, folder, roles, names),
        roles=roles,
        masking=tuple(_masking(each, roles) for each in document.sections("masking")),
        audit=_audit(document.section("audit"), names),
        history=_history(document.section("history"), folder),
        public_url=_url(document, "public_url").rstrip("/"),
        snapshot_seconds=document.number("snapshot_seconds", 5, low=1, high=300),
    )
    document.end()
    return Read(settings, {} if web is None else dict(web.pairs()))


def _cluster(section: Section, folder: Path) -> ClusterSettings:
    name = section.required("name")
    problem = _name_problem(name)
    if problem is not None:
        raise section.place_of("name").mistake(problem)
    properties: dict[str, str] = {}
    file = section.text("properties_file")
    if file:
        try:
            properties |= read_properties(str(folder / file))
        except UserError as error:
            raise section.place_of("properties_file").mistake(str(error)) from None
    given = section.section("properties")
    if given is not None:
        properties |= dict(given.pairs())
    bootstrap = section.text("bootstrap") or properties.get("bootstrap.servers", "")
    if not bootstrap:
        raise section.place.mistake("bootstrap must be given: HOST:PORT, or several with commas")
    properties.pop("bootstrap.servers", None)
    ca_file = section.text("ca_file")
    if ca_file:
        ca_file = str(folder / ca_file)
        properties.setdefault("schema.registry.ssl.truststore.location", ca_file)
    found = ClusterSettings(
        name=name,
        bootstrap=bootstrap,
        properties=properties,
        registry_url=_url(section, "registry") or None,
        connect_urls=section.texts("connect"),
        sql_url=_url(section, "sql") or None,
        spark_urls=section.texts("spark"),
        ca_file=ca_file or None,
    )
    section.end()
    return found


def one_cluster(
    *,
    name: str,
    bootstrap_server: str | None = None,
    command_config: str | None = None,
    schema_registry_url: str | None = None,
    connect_urls: Sequence[str] = (),
    sql_url: str | None = None,
    spark_urls: Sequence[str] = (),
    data: str | None = None,
) -> ConsoleSettings:
    """As a command line says it, without a file. `data` is the folder of the history."""
    problem = _name_problem(name)
    if problem is not None:
        raise BadOption(f"--name: {problem}")
    properties = read_properties(command_config) if command_config else {}
    bootstrap = bootstrap_server or properties.get("bootstrap.servers") or DEFAULT_BOOTSTRAP
    properties.pop("bootstrap.servers", None)
    cluster = ClusterSettings(
        name=name,
        bootstrap=bootstrap,
        properties=properties,
        registry_url=schema_registry_url,
        connect_urls=tuple(url for each in connect_urls for url in each.split(",")),
        sql_url=sql_url,
        spark_urls=tuple(url for each in spark_urls for url in each.split(",")),
    )
    history = HistorySettings(file=Path(data) / "history.db" if data else None)
    return ConsoleSettings(clusters=(cluster,), history=history)


def _name_problem(name: str) -> str | None:
    if _NAME.fullmatch(name) and name not in RESERVED:
        return None
    return (
        f"'{name}' cannot be the name of a cluster: letters, digits, points, - and _, and not one of "
        + ", ".join(sorted(RESERVED))
    )


def without_login(settings: ConsoleSettings) -> ConsoleSettings:
    """UserError where a file says how people log in."""
    if settings.login.method != START:
        raise UserError("--no-login: the file has a login; take it out of the file, or leave out the option")
    return replace(settings, login=replace(settings.login, method=NONE))


def _url(section: Section, name: str) -> str:
    found = section.text(name)
    if found and not found.startswith(("http://", "https://")):
        raise section.place_of(name).mistake(f"'{found}' is not an address: http://HOST:PORT")
    return found


def _roles(document: Section) -> dict[str, Role]:
    found = {}
    for section in document.sections("roles"):
        name = section.required("name")
        if name in BUILT_IN or not _ROLE_NAME.fullmatch(name):
            raise section.place_of("name").mistake(
                f"'{name}' cannot be the name of a role: {', '.join(BUILT_IN)} are there already"
            )
        grants = tuple(map(_grant, section.sections("grants")))
        if not grants:
            raise section.place.mistake("grants must be given, each with its actions")
        section.end()
        found[name] = Role(name, grants)
    return found


def _grant(section: Section) -> Grant:
    known = {action.value: action for action in Action}
    actions: set[Action] = set()
    for word in section.texts("actions"):
        if word == "*":
            actions |= set(Action)
        elif word in known:
            actions.add(known[word])
        else:
            raise section.place_of("actions").mistake(
                f"there is no action {word}; there are {', '.join(known)}"
            )
    if not actions:
        raise section.place.mistake("actions must be given: " + ", ".join(known))
    grant = Grant(
        actions=frozenset(actions),
        names=section.texts("names", EVERYTHING),
        clusters=section.texts("clusters", EVERYTHING),
    )
    section.end()
    return grant


def _login(section: Section, folder: Path, roles: Mapping[str, Role], clusters: list[str]) -> LoginSettings:
    method = section.one_of("method", LOGINS[1:], START)
    users = {} if method != USERS else _users(section, folder)
    scram = section.section("scram")
    cluster, mechanism = clusters[0], "SCRAM-SHA-512"
    if scram is not None:
        cluster = scram.one_of("cluster", tuple(clusters), clusters[0])
        mechanism = scram.one_of("mechanism", _MECHANISMS, mechanism)
        scram.end()
    oidc = section.section("oidc")
    if method == OIDC and oidc is None:
        raise section.place.mistake("oidc must be given, with issuer and client_id")
    roles_of = section.section("roles_of")
    table = {} if roles_of is None else {name: roles_of.texts(name) for name in roles_of.names()}
    for name, given in table.items():
        assert roles_of is not None
        _check_roles(given, roles, roles_of, name)
    for user in users.values():
        unknown = sorted(user.roles - roles.keys())
        if unknown:
            raise section.place.mistake(
                f"the user {user.name} has the role {unknown[0]}, and there is no such role"
            )
    if method in (SCRAM, OIDC) and not table and (oidc is None or "roles_claim" not in oidc):
        raise section.place.mistake("roles_of must be given: whoever logs in would have no role")
    found = LoginSettings(
        method=method,
        users=users,
        users_file=str(folder / section.text("users_file")) if "users_file" in section else "",
        scram_cluster=cluster if method == SCRAM else "",
        scram_mechanism=mechanism,
        oidc=None if oidc is None else _oidc(oidc, folder),
        roles_of=table,
        idle_minutes=section.number("idle_minutes", 8 * 60, low=1, high=7 * 24 * 60),
        max_hours=section.number("max_hours", 24, low=1, high=30 * 24),
    )
    section.end()
    return found


def _check_roles(given: tuple[str, ...], roles: Mapping[str, Role], section: Section, name: str) -> None:
    for role in given:
        if role not in roles:
            raise section.place_of(name).mistake(f"there is no role {role}; there are {', '.join(roles)}")


def _users(section: Section, folder: Path) -> dict[str, User]:
    lines = []
    for each in section.sections("users"):
        name, password = each.required("name"), each.required("password")
        if not password.startswith("PBKDF2:"):
            raise each.place_of("password").mistake(
                "must be a hash: penstock console --hash-password makes one"
            )
        if ":" in name or "," in name:
            raise each.place_of("name").mistake("may not have a colon or a comma")
        lines.append((each, f"{name}: {password},{','.join(each.texts('roles'))}"))
        each.end()
    users: dict[str, User] = {}
    for each, line in lines:
        try:
            users |= parse_users(line, option="users")
        except UserError:
            raise each.place.mistake(
                "its password is not what penstock console --hash-password makes"
            ) from None
    file = section.text("users_file")
    if file:
        try:
            users = parse_users(read_text(str(folder / file)), option=file) | users
        except UserError as error:
            raise section.place_of("users_file").mistake(str(error)) from None
    if not users:
        raise section.place.mistake("users or users_file must be given")
    return users


def _oidc(section: Section, folder: Path) -> OidcSettings:
    secret = section.text("client_secret")
    file = section.text("client_secret_file")
    if file:
        secret = read_text(str(folder / file)).strip()
    section.required("issuer")
    found = OidcSettings(
        issuer=_url(section, "issuer"),
        client_id=section.required("client_id"),
        client_secret=secret,
        provider=section.text("provider", "OpenID"),
        scopes=tuple(dict.fromkeys(("openid", *section.texts("scopes", ("profile",))))),
        name_claim=section.text("name_claim", "preferred_username"),
        roles_claim=section.text("roles_claim"),
    )
    section.end()
    return found


def _masking(section: Section, roles: Mapping[str, Role]) -> MaskingRule:
    topics = section.texts("topics")
    if not topics:
        raise section.place.mistake("topics must be given: names, or patterns such as orders-*")
    for name in ("fields", "key_fields"):
        for path in section.texts(name):
            try:
                parse_path(path)
            except BadPath as error:
                raise section.place_of(name).mistake(str(error)) from None
    except_roles = section.texts("except_roles")
    _check_roles(except_roles, roles, section, "except_roles")
    found = MaskingRule(
        topics=topics,
        fields=section.texts("fields"),
        key_fields=section.texts("key_fields"),
        whole_key=section.flag("key", False),
        headers=section.texts("headers"),
        how=section.one_of("how", HOWS, HOWS[0]),
        except_roles=except_roles,
        salt=section.text("salt") or secrets.token_hex(16),
    )
    section.end()
    return found


def _audit(section: Section | None, clusters: list[str]) -> AuditSettings:
    if section is None:
        return AuditSettings()
    found = AuditSettings(
        topic=section.required("topic"),
        cluster=section.one_of("cluster", tuple(clusters), clusters[0]),
    )
    section.end()
    return found


def _history(section: Section | None, folder: Path) -> HistorySettings:
    if section is None:
        return HistorySettings()
    file = section.text("file")
    found = HistorySettings(
        file=folder / file if file else None,
        keep_hours=section.number("keep_hours", 24 * 7, low=1, high=24 * 366),
        max_rows=section.number("max_rows", 2_000_000, low=10_000, high=100_000_000),
    )
    section.end()
    return found
