"""Where a tool finds the cluster: a broker's address, or ZooKeeper's in the spelling of older tools."""

import sys

from penstock.cli.clients import Connection
from penstock.cli.failures import Unreachable
from penstock.cli.kafka.options import Option, Options

ZOOKEEPER = Option("zookeeper", "The older spelling of the address.", "HOST:PORT[/CHROOT]", old=True)
ZOOKEEPER_TIMEOUT_S = 6.0
CONFIG_FILES = ("command-config", "admin.config")
DEPRECATED = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka. "
    "Use --bootstrap-server instead to specify a broker to connect to."
)


def is_addressed(given: Options) -> bool:
    return given.has("bootstrap-server") or given.has("zookeeper")


def client_properties(given: Options) -> dict[str, str]:
    """Of --command-config, and of --command-property where the tool has it, which wins."""
    from penstock.cli.property_files import parse_pairs, read_properties

    path = next((given.value(name) for name in CONFIG_FILES if given.has(name)), None)
    return {**(read_properties(path) if path else {}), **parse_pairs(given.values("command-property"))}


def connection(given: Options) -> Connection:
    properties = client_properties(given)
    bootstrap = given.value("bootstrap-server")
    if bootstrap is None and "zookeeper" in given.table.by_name and given.has("zookeeper"):
        print(DEPRECATED, file=sys.stderr, flush=True)
        bootstrap = _brokers_of(given.value("zookeeper") or "", properties)
    return Connection(bootstrap or "", properties)


def _brokers_of(zookeeper: str, properties: dict[str, str]) -> str:
    from penstock.stores.broker_addresses import NoAddresses, addresses

    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    try:
        return ",".join(addresses(zookeeper, timeout_s=ZOOKEEPER_TIMEOUT_S, protocol=protocol))
    except NoAddresses as error:
        raise Unreachable(str(error)) from None
