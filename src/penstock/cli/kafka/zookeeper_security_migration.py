"""zookeeper-security-migration: the ACLs of a cluster's nodes in ZooKeeper, closed or opened."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from penstock.cli.kafka.options import Option, Options, OptionTable, UsageError
from penstock.client.errors import Refused, Unreachable, UserError

if TYPE_CHECKING:
    from penstock.stores.zookeeper import ZooKeeperOptions

SECURE, UNSECURE = "secure", "unsecure"
TABLE = OptionTable(
    "zookeeper-security-migration",
    "Sets the ACLs of all nodes that a cluster has in ZooKeeper, when zookeeper.set.acl has been turned on or off.",
    [
        Option(
            "zookeeper.acl",
            "REQUIRED: secure: only who is logged in as this command is may change the nodes, and read secrets. unsecure: "
            "anybody may.",
            f"{SECURE}|{UNSECURE}",
        ),
        Option(
            "zookeeper.connect", "Where ZooKeeper is.", "HOST:PORT[,HOST:PORT…][/CHROOT]", "localhost:2181"
        ),
        Option(
            "zk-tls-config-file",
            "A file with options that say how ZooKeeper is entered, such as a broker's server.properties: zookeeper.ssl.… and "
            "the login, penstock.zookeeper.auth or penstock.zookeeper.sasl.jaas.config. A login may also be in the JAAS file "
            "that KAFKA_OPTS names.",
            "FILE",
        ),
        Option("zookeeper.session.timeout", "How long a session lasts, in ms.", "MS", "30000"),
        Option("zookeeper.connection.timeout", "How long to wait for ZooKeeper, in ms.", "MS", "30000"),
        Option("enable.path.check", "First look whether there is a cluster; if not, change nothing."),
    ],
    client_options=(),
    examples=[
        "zookeeper-security-migration --zookeeper.acl=secure --zookeeper.connect zk-1:2181/kafka "
        "--zk-tls-config-file server.properties"
    ],
)
NO_LOGIN: Final = (
    "no login for ZooKeeper: nodes can belong to nobody. Name a file with penstock.zookeeper.auth, "
    "penstock.zookeeper.sasl.jaas.config or zookeeper.ssl.keystore.location (--zk-tls-config-file), or a JAAS file "
    "(KAFKA_OPTS=-Djava.security.auth.login.config=FILE)"
)
AUTH: Final = "penstock.zookeeper.auth"


def execute(given: Options) -> int:
    given.require("zookeeper.acl")
    kind = (given.value("zookeeper.acl") or "").lower()
    if kind not in (SECURE, UNSECURE):
        raise UsageError(f"--zookeeper.acl must be {SECURE} or {UNSECURE}, not '{kind}'")
    options = _options(given, is_secure=kind == SECURE)
    count = asyncio.run(_migrate(options, checks_paths=given.has("enable.path.check")))
    who = "only the brokers' login may change them" if kind == SECURE else "anybody may change them"
    print(f"The ACLs of {count} nodes are set: {who}.")
    return 0


def _options(given: Options, *, is_secure: bool) -> ZooKeeperOptions:
    from penstock.client.property_files import read_properties
    from penstock.stores.zookeeper import ZooKeeperOptions
    from penstock.stores.zookeeper_security import security_of

    path = given.value("zk-tls-config-file")
    entering = read_properties(path) if path else {}
    try:
        security = security_of(entering, os.environ)
    except ValueError as error:
        raise UserError(str(error)) from None
    auth = entering.get(AUTH) or None
    has_certificate = security.tls is not None and bool(entering.get("zookeeper.ssl.keystore.location"))
    if auth is None and security.user is None and not has_certificate:
        raise UserError(NO_LOGIN)
    return ZooKeeperOptions(
        given.value("zookeeper.connect") or "",
        session_timeout_ms=given.required_integer("zookeeper.session.timeout"),
        connection_timeout_ms=given.required_integer("zookeeper.connection.timeout"),
        set_acl=is_secure,
        auth=auth,
        security=security,
    )


async def _migrate(options: ZooKeeperOptions, *, checks_paths: bool) -> int:
    from penstock.metadata.tree import StoreUnavailable, TreeError
    from penstock.stores.zookeeper import ZooKeeperStore
    from penstock.stores.zookeeper_ownership import missing, set_acls

    store = None
    try:
        store = ZooKeeperStore(options, asyncio.get_running_loop())
        await store.reconnect()
        if checks_paths and (absent := await missing(store)):
            raise UserError(
                f"ZooKeeper at {options.connect} has no cluster: {', '.join(absent)} is not there"
            )
        if not await store.exists("/"):
            raise UserError(f"the path of {options.connect} is not in ZooKeeper")
        return await set_acls(store)
    except StoreUnavailable as error:
        raise Unreachable(str(error)) from None
    except TreeError as error:
        raise Refused(f"{error}. What was done so far stays, and the command may be repeated") from None
    finally:
        if store is not None:
            await store.close()
