"""The row of the schema registry, which is started only when it is asked for: `penstock up --with registry`.

In a secured stack it speaks https, and lets in the admin, by the name and password of `client.properties`.
"""

from __future__ import annotations

import http.client
import secrets
import ssl
import sys

from penstock.model.endpoints import bracketed
from penstock.stack import brokers, http_settings, registry_address, secured
from penstock.stack.health import ASK_TIMEOUT_S, NO_ANSWER, http_health
from penstock.stack.stack import Member, Service, Stack

NAME = registry_address.NAME
SALT_BYTES = 16
OWN = frozenset(("listeners", "kafkastore.bootstrap.servers", "inter.instance.protocol"))


def _command(stack: Stack, member: Member) -> list[str]:
    """Its properties are written by it, too."""
    copies = min(brokers.REPLICATION, len(stack.members_of(brokers.NAME)))
    scheme = "https" if stack.is_secure else "http"
    properties = {
        "listeners": f"{scheme}://{bracketed(stack.host_of(member))}:{member.port}",
        "kafkastore.bootstrap.servers": brokers.bootstrap_of(stack),
        "kafkastore.topic.replication.factor": str(copies),
    }
    command = [sys.executable, "-m", "penstock", "registry"]
    if stack.is_secure:
        properties |= secured_listener(stack, member) | {"inter.instance.protocol": "https"}
        command += ["--command-config", str(secured.client_file(stack))]
    properties |= http_settings.settings_of(stack, NAME)
    file = stack.data_of(member) / "registry.properties"
    secured.write_properties(file, properties)
    return [*command, "--config", str(file)]


def secured_listener(stack: Stack, member: Member) -> dict[str, str]:
    """Properties of an HTTP service that lets in the admin."""
    from penstock.web.users_file import hashed

    user, password = secured.admin_login(stack)
    users = stack.data_of(member) / "users"
    secured.write_secret_text(
        users, f"{user}: {hashed(password, salt=secrets.token_bytes(SALT_BYTES))},admin\n"
    )
    return {
        "ssl.keystore.location": str(secured.certificate(stack, member)),
        "ssl.truststore.location": str(secured.authority_file(stack)),
        "authentication.method": "BASIC",
        "penstock.authentication.users.file": str(users),
    }


def health(stack: Stack, member: Member) -> str | None:
    """Of an HTTP service: by https in a secured stack."""
    if not stack.is_secure:
        return http_health()(stack, member)
    host, port = stack.address_of(member)
    try:
        context = ssl.create_default_context(cafile=str(secured.authority_file(stack)))
        connection = http.client.HTTPSConnection(host, port, timeout=ASK_TIMEOUT_S, context=context)
        try:
            connection.request("GET", "/health")
            status = connection.getresponse().status
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return NO_ANSWER
    return None if status == http.client.OK else f"answers GET /health with {status}"


def _load(given: dict[str, str]) -> list[str]:
    from penstock.registry.options import registry_options

    return registry_options(given, bootstrap=None, client={}).warnings


def _docs() -> dict[str, str]:
    from penstock.registry.options import OWN_OPTIONS

    return {option.name: option.doc for option in OWN_OPTIONS if option.name not in OWN}


SERVICE = Service(
    name=NAME,
    title="the schema registry",
    plural="schema registries",
    command=_command,
    health_check=health,
    port=8081,
    port_option="--registry-port",
    needs=(brokers.NAME,),
    default_count=0,
    check_settings=http_settings.check_settings(NAME),
    setting_problem=http_settings.checked_by(_load, own=OWN),
    setting_docs=_docs,
    own_files=r"registry\.properties|users",
)
