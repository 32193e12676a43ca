"""Where a tool finds the cluster: a broker's address, or ZooKeeper's in the spelling of older tools."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.cli.kafka.options import Option, Options
from penstock.client.clients import Connection
from penstock.client.errors import Unreachable, UserError

if TYPE_CHECKING:
    from penstock.client.cluster_client import ClusterClient

ZOOKEEPER = Option("zookeeper", "The older spelling of the address.", "HOST:PORT[/CHROOT]", old=True)
ZK_TLS_CONFIG = Option(
    "zk-tls-config-file", "A file with zookeeper.ssl options, for --zookeeper.", "FILE", old=True
)
ZOOKEEPER_TIMEOUT_S = 6.0
DEPRECATED = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka. "
    "Use --bootstrap-server instead to specify a broker to connect to."
)


def is_addressed(given: Options) -> bool:
    return given.has("bootstrap-server") or given.has("zookeeper")


def client_properties(given: Options) -> dict[str, str]:
    """Of --command-config, and of --command-property where the tool has it, which wins."""
    from penstock.client.property_files import parse_pairs, read_properties

    path = given.value("command-config")
    return {**(read_properties(path) if path else {}), **parse_pairs(given.values("command-property"))}


def connection(given: Options) -> Connection:
    properties = client_properties(given)
    bootstrap = given.value("bootstrap-server")
    if bootstrap is None and "zookeeper" in given.table.by_name and given.has("zookeeper"):
        print(DEPRECATED, file=sys.stderr, flush=True)
        bootstrap = _brokers_of(given.value("zookeeper") or "", properties, _zookeeper_options(given))
    return Connection(bootstrap or "", properties)


def cluster_client(given: Options) -> ClusterClient:
    """Unreachable within five seconds where nobody answers."""
    from penstock.client.cluster_client import ClusterClient

    where = connection(given)
    where.check()
    return ClusterClient(where)


def _zookeeper_options(given: Options) -> dict[str, str]:
    """Of --zk-tls-config-file, where the tool has it."""
    from penstock.client.property_files import read_properties

    path = given.value("zk-tls-config-file") if "zk-tls-config-file" in given.table.by_name else None
    return read_properties(path) if path else {}


def _brokers_of(zookeeper: str, properties: dict[str, str], entering: dict[str, str]) -> str:
    from penstock.stores.broker_addresses import NoAddresses, addresses

    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    try:
        return ",".join(
            addresses(zookeeper, timeout_s=ZOOKEEPER_TIMEOUT_S, protocol=protocol, given=entering)
        )
    except NoAddresses as error:
        raise Unreachable(str(error)) from None
    except ValueError as error:
        raise UserError(str(error)) from None
