"""The registry as a service in the frame of all HTTP services."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from penstock.client.clients import Connection
from penstock.client.compacted_topics import ensure_topic
from penstock.client.errors import Unreachable
from penstock.client.group_identity import Identity
from penstock.client.group_leadership import GroupOptions
from penstock.client.options import ClientOptions, client_options
from penstock.client.properties import SECURITY_NAMES
from penstock.client.reach import parse_addresses
from penstock.registry.access import Access
from penstock.registry.instance import Instance, InstanceOptions
from penstock.registry.numbers import tell_numbers
from penstock.registry.options import RegistryOptions
from penstock.registry.parsed import ParsedSchemas
from penstock.registry.refusals import Refusal
from penstock.registry.registry import Registry
from penstock.registry.routes.table import table_of
from penstock.web.content_types import JSON, OCTETS, ContentTypes
from penstock.web.errors import HttpError
from penstock.web.forwarding import Forwarding
from penstock.web.service import Running, WebService

log = logging.getLogger("penstock.registry")

LOOPBACK: Final = "127.0.0.1"
PROTOCOL_TYPE: Final = "sr"
PROTOCOL: Final = "v0"
PASSED_ON: Final = ("confluent-accept-unknown-properties",)
V1: Final = "application/vnd.schemaregistry.v1+json"
VENDOR: Final = "application/vnd.schemaregistry+json"
APICURIO: Final = ("/apis/ccompat/v6", "/apis/ccompat/v7")
"""Where Apicurio's registry has this interface: the addresses that its users have set end so."""
CONTENT: Final = ContentTypes(accepted=(V1, VENDOR, JSON, OCTETS), offered=(V1, VENDOR, JSON))


def registry_service(options: RegistryOptions) -> WebService:
    """BadOption for what cannot be used."""
    connection = Connection(options.bootstrap, dict(options.client))
    client = _client_options(options)
    registry = Registry(options, Access(options["penstock.subject.acls.file"], options.super_users))

    @asynccontextmanager
    async def lifecycle(running: Running) -> AsyncIterator[None]:
        registry.parsed = ParsedSchemas()
        registry.forwarding = Forwarding(
            connect_timeout_s=options["leader.connect.timeout.ms"] / 1000,
            read_timeout_s=options["leader.read.timeout.ms"] / 1000,
            user_info=options["penstock.inter.instance.user.info"],
            ssl_properties=options.web.given,
            passed_on=PASSED_ON,
        )
        registry.cluster_id = await asyncio.to_thread(_topic_ready, options, connection)
        registry.instance = _instance(options, connection, client, running)
        tell_numbers(registry, running.metrics)
        registry.instance.start()
        try:
            async with asyncio.timeout(options["kafkastore.init.timeout.ms"] / 1000):
                await registry.instance.loaded.wait()
            registry.instance.take_part()
            yield
        except TimeoutError:
            if registry.instance.loaded.is_set():
                raise
            raise Unreachable(
                f"the topic {options['kafkastore.topic']} could not be read within kafkastore.init.timeout.ms: "
                f"{registry.instance.problem}"
            ) from None
        finally:
            await registry.instance.stop()
            registry.forwarding.close()
            registry.parsed.close()

    return WebService(
        name="registry",
        title="Penstock schema registry",
        routes=table_of(registry),
        content=CONTENT,
        lifecycle=lifecycle,
        health=lambda: registry.instance.problem,
        refusal=_refused,
        rewrite=_without_prefix,
    )


def _without_prefix(raw_path: str) -> str:
    for prefix in APICURIO:
        if raw_path == prefix or raw_path.startswith(f"{prefix}/"):
            return raw_path[len(prefix) :] or "/"
    return raw_path


def _refused(error: Exception) -> HttpError | None:
    if isinstance(error, Refusal):
        return HttpError(error.status, str(error), error_code=error.code)
    return None


def _topic_ready(options: RegistryOptions, connection: Connection) -> str:
    cluster_id = ensure_topic(
        connection,
        options["kafkastore.topic"],
        option="kafkastore.topic",
        replication_factor=options["kafkastore.topic.replication.factor"],
        timeout_s=options["kafkastore.init.timeout.ms"] / 1000,
        skip_check=options["kafkastore.topic.skip.validation"],
    )
    return cluster_id or ""


def _client_options(options: RegistryOptions) -> ClientOptions:
    names = SECURITY_NAMES | {"client.id", "request.timeout.ms"}
    given = {name: value for name, value in options.client.items() if name in names}
    given.setdefault("client.id", "penstock-registry")
    return client_options(options.bootstrap, given)


def _instance(
    options: RegistryOptions, connection: Connection, client: ClientOptions, running: Running
) -> Instance:
    return Instance(
        connection,
        client,
        _identity(options, running),
        InstanceOptions(
            options["kafkastore.topic"],
            GroupOptions(
                PROTOCOL_TYPE,
                PROTOCOL,
                options["schema.registry.group.id"],
                options["kafkagroup.session.timeout.ms"],
                options["kafkagroup.heartbeat.interval.ms"],
                options["kafkagroup.rebalance.timeout.ms"],
            ),
            options["kafkastore.timeout.ms"],
        ),
    )


def _identity(options: RegistryOptions, running: Running) -> Identity:
    """Where others find this instance: by `host.name`, or by the address that it listens on, or by the machine's name."""
    wanted = options["inter.instance.protocol"].lower()
    listeners = [one for one in running.listeners if one.scheme == wanted] or list(running.listeners)
    scheme, address = listeners[0]
    host = options.web["host.name"] or address.host
    if host in ("0.0.0.0", "::", ""):
        host = _own_host(options.bootstrap)
    return Identity(scheme, host, options["host.port"] or address.port, options.is_eligible)


def _own_host(bootstrap: str) -> str:
    """By which other instances reach this machine. Those of a cluster on loopback are all on it."""
    servers = [address.host for address in parse_addresses(bootstrap)]
    if all(host in ("localhost", "::1") or host.startswith("127.") for host in servers):
        return LOOPBACK
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        log.warning(
            "The name of this machine, %s, has no address: others do not find it without host.name", name
        )
    return name
