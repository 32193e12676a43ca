"""kafka-broker-api-versions: which requests each broker understands, and in which versions."""

from penstock.admin.brokers import BrokerAt, list_brokers, versions_of
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.options import Options, OptionTable
from penstock.client.clients import Connection
from penstock.client.errors import Refused, Unreachable
from penstock.model.api_keys import ApiKey

# The versions that a Kafka 4.3.1 client speaks: (lowest, highest) by key. Requests between brokers are not shown by name here.
CLIENT_VERSIONS = {
    0: (3, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4),
    13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 21: (0, 2),
    22: (0, 6), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5), 29: (1, 3), 30: (1, 3),
    31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2),
    40: (1, 2), 41: (1, 3), 42: (0, 2), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1),
    49: (0, 1), 50: (0, 0), 51: (0, 0), 55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0),
    66: (0, 2), 68: (0, 1), 69: (0, 1), 71: (0, 0), 72: (0, 0), 74: (0, 1), 75: (0, 0), 76: (1, 1), 77: (1, 1),
    78: (1, 2), 79: (1, 2), 80: (0, 1), 81: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1),
    88: (0, 0), 89: (0, 0), 90: (0, 1), 91: (0, 0), 92: (0, 0),
}  # fmt: skip

TABLE = OptionTable(
    "kafka-broker-api-versions",
    "This tool helps to retrieve broker version information.",
    [],
    examples=["kafka-broker-api-versions --bootstrap-server localhost:9092"],
)


def execute(given: Options) -> int:
    given.require("bootstrap-server")
    cluster = connection(given)
    cluster.check()
    for broker in list_brokers(cluster):
        print(f"{_node(broker)} -> {_versions(cluster, broker)}")
    return 0


def _node(broker: BrokerAt) -> str:
    rack = "null" if broker.rack is None else broker.rack
    return f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {rack} isFenced: false)"


def _versions(cluster: Connection, broker: BrokerAt) -> str:
    try:
        offered = versions_of(cluster, broker)
    except (Refused, Unreachable) as error:
        return f"ERROR: {error}"
    lines = [_line(key, offered.get(key)) for key in sorted(CLIENT_VERSIONS.keys() | offered.keys())]
    return "(\n\t" + ",\n\t".join(lines) + "\n)"


def _line(key: int, offered: tuple[int, int] | None) -> str:
    name = _name(key)
    if offered is None:
        return f"{name}({key}): UNSUPPORTED"
    low, high = offered
    versions = str(low) if low == high else f"{low} to {high}"
    if key not in CLIENT_VERSIONS:
        return f"UNKNOWN({key}): {versions}"
    client_low, client_high = CLIENT_VERSIONS[key]
    usable = min(high, client_high)
    return f"{name}({key}): {versions} [usable: {usable if usable >= max(low, client_low) else 'none'}]"


def _name(key: int) -> str:
    try:
        return "".join(part.capitalize() for part in ApiKey(key).name.split("_"))
    except ValueError:
        return "UNKNOWN"
