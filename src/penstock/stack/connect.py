"""The row of Connect, which is started only when it is asked for: `penstock up --with connect`.

In a secured stack it speaks https, and lets in the admin, by the name and password of `client.properties`.
"""

from __future__ import annotations

import sys

from penstock.client.property_files import read_properties
from penstock.model.endpoints import bracketed
from penstock.stack import brokers, http_settings, registry, secured
from penstock.stack.stack import Member, Service, Stack

NAME = "connect"
OWN = frozenset(("listeners", "bootstrap.servers", "group.id"))
JSON = "org.apache.kafka.connect.json.JsonConverter"


def _command(stack: Stack, member: Member) -> list[str]:
    """Its properties are written by it, too."""
    scheme = "https" if stack.is_secure else "http"
    copies = str(min(brokers.REPLICATION, len(stack.members_of(brokers.NAME))))
    properties = {
        "listeners": f"{scheme}://{bracketed(stack.host_of(member))}:{member.port}",
        "bootstrap.servers": brokers.bootstrap_of(stack),
        "group.id": "connect-cluster",
        "key.converter": JSON,
        "value.converter": JSON,
        "exactly.once.source.support": "enabled",
        "offset.flush.interval.ms": "10000",
    }
    for kind in ("config", "offset", "status"):
        name = {"config": "configs", "offset": "offsets", "status": "status"}[kind]
        properties[f"{kind}.storage.topic"] = f"connect-{name}"
        properties[f"{kind}.storage.replication.factor"] = copies
    if stack.is_secure:
        properties |= registry.secured_listener(stack, member)
        login = read_properties(str(secured.client_file(stack)))
        properties |= {name: text for name, text in login.items() if name not in properties}
    properties |= http_settings.settings_of(stack, NAME)
    file = stack.data_of(member) / "connect-distributed.properties"
    secured.write_properties(file, properties)
    return [sys.executable, "-m", "penstock", "connect", "distributed", str(file)]


def _load(given: dict[str, str]) -> list[str]:
    from penstock.connect.running.options import worker_options

    named = dict.fromkeys(("config.storage.topic", "offset.storage.topic", "status.storage.topic"), "connect")
    needed = {"key.converter": JSON, "value.converter": JSON, "group.id": "connect", **named}
    return worker_options({**needed, **given}, is_standalone=False).warnings


def _docs() -> dict[str, str]:
    from penstock.connect.running.options import OWN_OPTIONS

    return {option.name: option.doc for option in OWN_OPTIONS if option.name not in OWN}


SERVICE = Service(
    name=NAME,
    title="Connect",
    plural="Connect workers",
    command=_command,
    health_check=registry.health,
    port=8083,
    port_option="--connect-port",
    needs=(brokers.NAME,),
    uses=(registry.NAME,),
    default_count=0,
    check_settings=http_settings.check_settings(NAME),
    setting_problem=http_settings.checked_by(_load, own=OWN),
    setting_docs=_docs,
    own_files=r"connect-distributed\.properties|users",
)
