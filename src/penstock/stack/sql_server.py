"""The row of the SQL server, which is started only when it is asked for: `penstock up --with sql`.

In a secured stack it speaks https, and lets in the admin, by the name and password of `client.properties`.
"""

from __future__ import annotations

import sys

from penstock.model.endpoints import bracketed
from penstock.stack import brokers, connect, http_settings, registry, secured
from penstock.stack.stack import Member, Service, Stack

NAME = "sql"
OWN = frozenset(("listeners", "bootstrap.servers", "penstock.sql.data", "ksql.schema.registry.url"))


def _command(stack: Stack, member: Member) -> list[str]:
    """Its properties are written by it, too."""
    scheme = "https" if stack.is_secure else "http"
    copies = min(brokers.REPLICATION, len(stack.members_of(brokers.NAME)))
    properties = {
        "listeners": f"{scheme}://{bracketed(stack.host_of(member))}:{member.port}",
        "bootstrap.servers": brokers.bootstrap_of(stack),
        "ksql.internal.topic.replicas": str(copies),
        "penstock.sql.data": str(stack.data_of(member)),
    }
    registries = stack.members_of(registry.NAME)
    if registries and not stack.is_secure:
        host, port = stack.address_of(registries[0])
        properties["ksql.schema.registry.url"] = f"http://{bracketed(host)}:{port}"
    workers = stack.members_of(connect.NAME)
    if workers and not stack.is_secure:
        host, port = stack.address_of(workers[0])
        properties["ksql.connect.url"] = f"http://{bracketed(host)}:{port}"
    properties |= http_settings.settings_of(stack, NAME)
    command = [sys.executable, "-m", "penstock", "sql-server"]
    if stack.is_secure:
        properties |= registry.secured_listener(stack, member)
        command += ["--command-config", str(secured.client_file(stack))]
    file = stack.data_of(member) / "ksql-server.properties"
    secured.write_properties(file, properties)
    return [*command, "--config", str(file)]


def _load(given: dict[str, str]) -> list[str]:
    from penstock.sql.engine.options import sql_options

    return sql_options(given).warnings


def _docs() -> dict[str, str]:
    from penstock.sql.engine.options import SQL_OPTIONS

    return {option.name: option.doc for option in SQL_OPTIONS if option.name not in OWN}


SERVICE = Service(
    name=NAME,
    title="the SQL server",
    plural="SQL servers",
    command=_command,
    health_check=registry.health,
    port=8088,
    port_option="--sql-port",
    needs=(brokers.NAME,),
    uses=(registry.NAME, connect.NAME),
    default_count=0,
    check_settings=http_settings.check_settings(NAME),
    setting_problem=http_settings.checked_by(_load, own=OWN),
    setting_docs=_docs,
    own_files=r"ksql-server\.properties|users|.*\.sqlite3?(-wal|-shm|-journal)?|views/.*|spark/.*",
)
