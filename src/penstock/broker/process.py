"""The broker process: start in the right order, serve, stop in the reverse order."""

import asyncio
import contextlib
import gc
import logging
import os
import random
import resource
import signal
import socket
import sys
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import uvloop

from penstock.broker.access.file_logins import logins_of_file
from penstock.broker.node import Node
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.quotas.connection_limits import limits_of
from penstock.broker.quotas.named_addresses import NamedAddresses
from penstock.broker.requests.dispatch import Dispatch
from penstock.broker.serving import BrokerServer, Ports, StartError
from penstock.config.layers import BrokerConfig
from penstock.config.loading import load
from penstock.config.option import ConfigError
from penstock.metadata.image import BrokerRegistration
from penstock.metadata.tree import MetadataTree
from penstock.model.endpoints import Endpoint, bracketed
from penstock.net.admission import Admission
from penstock.net.buffers import ReceiveBuffers
from penstock.net.endpoints import parse_endpoints, security_protocol
from penstock.net.listener import BACKLOG, Listener, bind
from penstock.runtime.boot import boot_id
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.security.jaas_files import JaasFile
from penstock.security.quotas import Window
from penstock.stores.embedded import FILE_NAME, StoreError, open_store

if TYPE_CHECKING:
    from penstock.broker.metrics.facts import Metrics
    from penstock.net.http import HttpResponder
    from penstock.stores.zookeeper import ZooKeeperOptions

log = logging.getLogger("penstock.broker")

METRICS: Final = "METRICS"
"""Not a listener of Kafka's kind, but bound as one."""
PORT_OPTIONS: Final = {METRICS: "--metrics-port"}
PARTIAL_BYTES_LIMIT: Final = 512 * 1024 * 1024
"""Bound on all unfinished requests together where queued.max.request.bytes sets none."""
STORE_TIMEOUT_SECONDS: Final = 20.0
"""Less than clients wait (30 s by default): they are to hear that ZooKeeper does not answer."""
PRELOAD_AFTER_SECONDS: Final = 0.2
SWITCH_SECONDS: Final = 0.0005
"""How long a thread of a pool may keep the interpreter when the loop's wants it; Python's own choice is 5 ms."""
GC_THRESHOLD: Final = 100_000
"""Full collections of a heap that hardly changes are pauses for nothing; the start's objects are frozen out of them."""


def run(properties: dict[str, str], sets: dict[str, str]) -> int:
    try:
        config, reports = load(properties, sets)
        config.put_in_force(logins_of_file(config, JaasFile(os.environ)))
    except (ConfigError, ValueError) as error:
        raise StartError(str(error)) from None
    for report in reports:
        log.log(logging.WARNING if report.level == "warning" else logging.INFO, "%s", report.text)
    _raise_file_limit()
    sys.setswitchinterval(SWITCH_SECONDS)
    process = BrokerProcess(config)
    uvloop.run(process.serve())
    return 1 if process.failure else 0


class BrokerProcess:
    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._clock = SystemClock()
        self.failure: str | None = None
        """Why the broker ended although nobody asked it to."""

    async def serve(self) -> None:
        """Start, say so, and run until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_number, stopping.set)
        endpoints, advertised = self._endpoints()
        sockets = bind_all(endpoints, self._backlog())
        if any(endpoint.port == 0 for endpoint in endpoints):
            bound = [each._replace(port=_port(sockets[each.listener])) for each in endpoints]
            self._config.put_in_force({"listeners": ",".join(map(str, bound))})
        metrics_endpoint = self._metrics_endpoint()
        metrics_socket = bind_all([metrics_endpoint], BACKLOG)[METRICS] if metrics_endpoint else None

        def end(reason: str) -> None:
            self.failure = reason
            stopping.set()

        ports = Ports(loop, self._clock, OsDisk(), random.Random(), self._open_store, boot_id=boot_id())
        broker = BrokerServer(self._config, ports, advertised)
        await broker.open(end)
        listeners = self._listeners(sockets, loop, broker)
        if broker.is_clustered:
            for listener in listeners:
                listener.start()
        await broker.join(self._registration(endpoints, advertised, sockets))
        if self.failure:
            raise StartError(self.failure)
        for listener in listeners:
            if not broker.is_clustered:
                listener.start()
            host = "0.0.0.0" if listener.host == "::" else listener.host
            with contextlib.suppress(OSError):  # no room for a log is no reason not to serve
                print(f"penstock: listening on {host}:{listener.port}", flush=True)
        warn_of_open_doors(listeners, broker.node)
        node = broker.node
        node.doors.start()
        metrics = await _serve_metrics(node, listeners, metrics_socket) if metrics_socket else None
        cluster_id, topic_count = node.image.cluster_id, len(node.image.topics)
        log.info("broker %s of cluster %s serves %s topics", node.broker_id, cluster_id, topic_count)
        loop.call_later(PRELOAD_AFTER_SECONDS, self._preload, node, broker.dispatch)
        await stopping.wait()
        if self.failure:
            log.critical("the broker stops: %s", self.failure)
        log.info("stopping")
        await broker.hand_over()
        if metrics is not None:
            facts, responder = metrics
            facts.stop()
            await responder.stop()
        node.doors.stop()
        for listener in listeners:
            listener.stop_accepting()

        def close_connections() -> None:
            for listener in listeners:
                listener.close()

        await broker.stop(close_connections)
        log.info("stopped")

    def _listeners(
        self, sockets: dict[str, socket.socket], loop: asyncio.AbstractEventLoop, broker: BrokerServer
    ) -> list[Listener]:
        buffers = ReceiveBuffers(self._partial_bytes_limit())
        broker.node.effects.reload_broker_configs()  # what was set while it ran counts from the first connection on
        doors = broker.node.doors
        window = Window(
            self._config.get("quota.window.num"), self._config.get("quota.window.size.seconds") * 1000
        )
        quotas = broker.node.client_quotas.table
        admission = Admission(window, rate_of_address=quotas.connections_per_second)
        addresses = NamedAddresses(self._config, loop, broker.node.pools.names)
        broker.node.effects.followers_of_configs.append(addresses)
        listeners = []
        for name, sock in sockets.items():
            try:
                door = doors.open(name, broker.dispatch.receive)
            except ValueError as error:
                raise StartError(f"listener {name}: {error}") from None
            limits = partial(limits_of, self._config, name, door.max_frame_bytes, addresses)
            listeners.append(Listener(name, sock, loop, door.receive, buffers, limits, door.tls, admission))
        return listeners

    async def _open_store(self, partitions: HeldPartitions) -> MetadataTree:
        if self._config.get("zookeeper.connect"):
            from penstock.stores.zookeeper import open_store as connect

            return await connect(zookeeper_options(self._config))
        try:
            return open_store(store_directory(partitions))
        except StoreError as error:
            raise StartError(str(error)) from None

    def _preload(self, node: Node, dispatch: Dispatch) -> None:
        """Import one handler at a time while nothing else waits, so that no client pays for it; then freeze the heap."""
        if node.is_stopping:
            return
        if dispatch.load_next():
            node.loop.call_later(0.005, self._preload, node, dispatch)
            return
        if not node.is_clustered:  # else the controller says which are ours
            node.transactions.load_all()
            node.groups.load_all()
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, 20, 100)

    def _endpoints(self) -> tuple[list[Endpoint], dict[str, Endpoint]]:
        config = self._config
        try:
            endpoints = parse_endpoints(",".join(config.listeners), "listeners")
            advertised = parse_endpoints(",".join(config.advertised_listeners), "advertised.listeners")
            protocol_map = config.get("listener.security.protocol.map")
            if not endpoints:
                raise ValueError("listeners: name at least one listener")
            for endpoint in endpoints:
                security_protocol(endpoint.listener, protocol_map)
            for endpoint in advertised:
                if all(endpoint.listener != other.listener for other in endpoints):
                    log.warning("advertised.listeners: %s has no effect: no listener is called so", endpoint)
                if not endpoint.host or endpoint.host == "0.0.0.0":
                    raise ValueError(
                        f"advertised.listeners: {endpoint} is not an address that clients can connect to: name a host"
                    )
        except ValueError as error:
            raise StartError(str(error)) from None
        return endpoints, {endpoint.listener: endpoint for endpoint in advertised}

    def _metrics_endpoint(self) -> Endpoint | None:
        text = self._config.get("penstock.metrics.listener")
        if not text:
            return None
        try:
            return parse_endpoints(f"{METRICS}://{text}", "penstock.metrics.listener")[0]
        except (ValueError, IndexError):
            raise StartError(f"penstock.metrics.listener: {text!r} is not of the form host:port") from None

    def _registration(
        self,
        endpoints: list[Endpoint],
        advertised: dict[str, Endpoint],
        sockets: dict[str, socket.socket],
    ) -> BrokerRegistration:
        registered = {}
        ports = {name: _port(sock) for name, sock in sockets.items()}
        connect = self._config.get("zookeeper.connect")
        own_host = host_towards(connect) if connect else "localhost"
        for name, host, _, _ in endpoints:
            registered[name] = advertised.get(name) or Endpoint(
                name, host if host not in ("", "0.0.0.0", "::") else own_host, ports[name]
            )
        return BrokerRegistration(self._config.node_id, registered, self._config.get("broker.rack"))

    def _backlog(self) -> int:
        is_set = self._config.is_set("socket.listen.backlog.size")
        return int(self._config.get("socket.listen.backlog.size")) if is_set else BACKLOG

    def _partial_bytes_limit(self) -> int:
        limit = int(self._config.get("queued.max.request.bytes"))
        return limit if limit > 0 else PARTIAL_BYTES_LIMIT


def host_towards(connect: str) -> str:
    """This machine's address on the way to ZooKeeper: other brokers and clients come the same way."""
    for server in connect.partition("/")[0].split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            found = socket.getaddrinfo(host.strip("[]") or server, int(port or 2181), type=socket.SOCK_DGRAM)
            with socket.socket(found[0][0], socket.SOCK_DGRAM) as probe:
                probe.connect(found[0][4])  # sends nothing
                return str(probe.getsockname()[0])
        except (OSError, ValueError):
            continue
    return "localhost"


def store_directory(partitions: HeldPartitions) -> str:
    """Where the metadata store is: in the first log directory that has it, or, for a new cluster, in the first of all."""
    directories = partitions.log_directories
    usable = [directory.path for directory in directories.online]
    found = next((path for path in usable if os.path.exists(os.path.join(path, FILE_NAME))), None)
    if found is None and directories.failed and directories.cluster_id() is not None:
        raise StartError(
            f"the cluster's metadata ({FILE_NAME}) is in none of {', '.join(usable)}; it must be in "
            f"{' or '.join(directories.failed)}, which cannot be used: "
            f"{next(iter(directories.failed.values())).strerror}"
        )
    return found or usable[0]


def zookeeper_options(config: BrokerConfig) -> "ZooKeeperOptions":
    from penstock.stores.zookeeper import ZooKeeperOptions
    from penstock.stores.zookeeper_security import security_of

    get = config.get
    try:
        security = security_of(config.static, os.environ)
    except ValueError as error:
        raise StartError(str(error)) from None
    return ZooKeeperOptions(
        get("zookeeper.connect"),
        session_timeout_ms=get("zookeeper.session.timeout.ms"),
        connection_timeout_ms=get("zookeeper.connection.timeout.ms"),
        set_acl=get("zookeeper.set.acl"),
        max_in_flight_requests=get("zookeeper.max.in.flight.requests"),
        auth=get("penstock.zookeeper.auth"),
        security=security,
        timeout_s=STORE_TIMEOUT_SECONDS,
    )


def bind_all(endpoints: list[Endpoint], backlog: int) -> dict[str, socket.socket]:
    """A listening socket for each endpoint, by listener name; all of them or a StartError."""
    sockets: dict[str, socket.socket] = {}
    for endpoint in endpoints:
        try:
            sockets[endpoint.listener] = bind(endpoint.host, endpoint.port, backlog=backlog)
        except OSError as error:
            for sock in sockets.values():
                sock.close()
            raise StartError(
                f"cannot listen on {endpoint.host or '0.0.0.0'}:{endpoint.port}: {error.strerror}. "
                f"Choose another with {PORT_OPTIONS.get(endpoint.listener, '--port')}, or stop what is using it"
            ) from None
    return sockets


async def _serve_metrics(
    node: Node, listeners: list[Listener], sock: socket.socket
) -> "tuple[Metrics, HttpResponder]":
    from penstock.broker.metrics.facts import PATH, Metrics
    from penstock.net.http import HttpResponder
    from penstock.runtime.loop_lag import time_on_cores

    times = time_on_cores()
    metrics = Metrics(node, listeners, lambda: sum(times()))
    metrics.start()
    responder = HttpResponder(PATH, metrics.page)
    await responder.start(sock)
    host, port = sock.getsockname()[:2]
    print(f"penstock: metrics on http://{_url_host(host)}:{port}{PATH}", flush=True)
    return metrics, responder


def _port(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def warn_of_open_doors(listeners: list[Listener], node: Node) -> None:
    """A line for each, at the start: an open broker on a network is found by others soon."""
    exposed = [
        f"{listener.name} ({_url_host(listener.host)}:{listener.port})"
        for listener in listeners
        if not ip_address(listener.host).is_loopback and not node.doors.asks_who(listener.name)
    ]
    if node.config.get("super.users") and not node.authorizer.is_on:
        log.warning(
            "super.users without authorizer.class.name: nothing is checked, and everybody may do everything"
        )
    if exposed:
        log.warning(
            "everybody who reaches this machine can read and write: %s asks nobody who they are. Listen on "
            "127.0.0.1 (--host), or see docs/security.md",
            ", ".join(exposed),
        )


def _url_host(host: str) -> str:
    return "0.0.0.0" if host == "::" else bracketed(host)


def _raise_file_limit() -> None:
    """Connections and segments are files; the usual soft limit of 1,024 is for programs that have few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            log.warning("cannot raise the limit of open files above %s: %s", soft, error)
