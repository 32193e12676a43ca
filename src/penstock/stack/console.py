"""The row of the console, which is started only when it is asked for: `penstock up --with console`.

It is told of all that the stack has: brokers, registry, Connect, SQL server. In a secured stack it speaks https, enters
everything as the admin, and lets in the admin only, by the name and password of `client.properties`. In an open one that listens
on this machine it needs no login; in an open one that others reach, the password is in its log (`penstock logs console`).

Its settings are those of the web server (`idle.timeout.ms`, …), and `config`: a console.yaml of your own, used in place of all
this.
"""

from __future__ import annotations

import secrets
import sys
from typing import Any

from penstock.client.errors import UserError
from penstock.client.property_files import read_properties
from penstock.model.endpoints import bracketed
from penstock.stack import brokers, connect, http_settings, registry, registry_address, secured, sql_server
from penstock.stack.stack import Member, Service, Stack

NAME = "console"
CLUSTER = "local"
CONFIG = "config"
SALT_BYTES = 16
OWN = frozenset(("listeners",))


def _command(stack: Stack, member: Member) -> list[str]:
    """Its settings are written by it, too."""
    from penstock.console.gate import is_loopback

    given = http_settings.settings_of(stack, NAME)
    own_config = given.pop(CONFIG, "")
    host = stack.host_of(member)
    command = [sys.executable, "-m", "penstock", "console", "--host", host, "--port", str(member.port)]
    file = stack.data_of(member) / "console.yaml"
    secured.write_secret_text(file, _written(stack, member, given))
    command += ["--config", own_config or str(file)]
    if not own_config and not stack.is_secure and is_loopback(bracketed(host)):
        command.append("--no-login")
    return command


def _written(stack: Stack, member: Member, web: dict[str, str]) -> str:
    import yaml

    cluster: dict[str, Any] = {"name": CLUSTER, "bootstrap": brokers.bootstrap_of(stack)}
    settings: dict[str, Any] = {
        "clusters": [cluster],
        "history": {"file": "history.db"},
    }
    registry_url = registry_address.url_of(stack)
    if stack.is_secure:
        user, password = secured.admin_login(stack)
        authority = str(secured.authority_file(stack))
        login = read_properties(str(secured.client_file(stack)))
        login.pop("bootstrap.servers", None)
        if registry_url is not None:
            login |= {
                "schema.registry.basic.auth.credentials.source": "USER_INFO",
                "schema.registry.basic.auth.user.info": f"{user}:{password}",
            }
        cluster |= {"properties": login, "ca_file": authority}
        settings["login"] = {"method": "users", "users": [_user(user, password)]}
        web = {"ssl.keystore.location": str(secured.certificate(stack, member)), **web}
    if registry_url is not None:
        cluster["registry"] = registry_url
    connects = [_url(stack, each) for each in stack.members_of(connect.NAME)]
    if connects:
        cluster["connect"] = connects
    servers = [_url(stack, each) for each in stack.members_of(sql_server.NAME)]
    if servers:
        cluster["sql"] = servers[0]
    if web:
        settings["web"] = web
    written: str = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    return written


def _user(name: str, password: str) -> dict[str, Any]:
    from penstock.web.users_file import hashed

    return {
        "name": name,
        "password": hashed(password, salt=secrets.token_bytes(SALT_BYTES)),
        "roles": ["admin"],
    }


def _url(stack: Stack, member: Member) -> str:
    from urllib.parse import quote

    host, port = stack.address_of(member)
    if not stack.is_secure:
        return f"http://{bracketed(host)}:{port}"
    user, password = (quote(each, safe="") for each in secured.admin_login(stack))
    return f"https://{user}:{password}@{bracketed(host)}:{port}"


def _load(given: dict[str, str]) -> list[str]:
    from penstock.web.options import load

    return load({name: value for name, value in given.items() if name != CONFIG}).warnings


def _check(stack: Stack) -> None:
    http_settings.check_settings(NAME)(stack)
    given = http_settings.settings_of(stack, NAME)
    others = sorted(set(given) - {CONFIG})
    if CONFIG in given and others:  # a command line would show them to everybody on the machine
        raise UserError(
            f"console: write {others[0]} under web: in {given[CONFIG]}, which takes the place of the others"
        )


def _docs() -> dict[str, str]:
    return {CONFIG: "A console.yaml of your own, in place of the one that the stack writes."}


SERVICE = Service(
    name=NAME,
    title="the console",
    plural="consoles",
    command=_command,
    health_check=registry.health,
    port=8000,
    port_option="--console-port",
    needs=(brokers.NAME,),
    uses=(registry.NAME, connect.NAME, sql_server.NAME),
    default_count=0,
    check_settings=_check,
    setting_problem=http_settings.checked_by(_load, own=OWN),
    setting_docs=_docs,
    own_files=r"console\.yaml|history\.db.*",
)
