"""kafka-cluster: the cluster's id, where its brokers are, and how to forget one that is gone for good."""

from penstock.admin.brokers import BrokerAt, cluster_id, endpoints, unregister
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import Option, Options
from penstock.cli.kafka.subcommands import Subcommand, Subcommands
from penstock.client.cluster_client import ClusterClient
from penstock.client.wire_client import UnsupportedByBroker

HEADERS = ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")
NUMBER_WIDTH = 10
NO_RACK_WIDTH = 10
TYPE_WIDTH = 15

SUBCOMMANDS = Subcommands(
    "kafka-cluster",
    "Asks a cluster who it is and where its brokers are, and takes one out that is gone.",
    {
        "cluster-id": Subcommand("Print the cluster's id.", [], [], "cluster-id"),
        "list-endpoints": Subcommand(
            "List where each broker is to be reached.",
            [Option("include-fenced-brokers", "Those as well that are not allowed to serve.")],
            [],
            "list-endpoints",
        ),
        "unregister": Subcommand(
            "Take a broker that is gone out of the cluster (KRaft only).",
            [Option("id", "The id of the broker.", "N")],
            ["id"],
            "unregister --id 3",
        ),
    },
    old_spellings={"config": "command-config"},
)
TABLE = SUBCOMMANDS.table


def execute(given: Options) -> int:
    command = SUBCOMMANDS.check(given)
    given.modernise()
    broker_id = given.required_integer("id") if command == "unregister" else -1
    with cluster_client(given) as client:
        if command == "cluster-id":
            print(f"Cluster ID: {cluster_id(client)}")
        elif command == "list-endpoints":
            _list_endpoints(endpoints(client, with_fenced=given.has("include-fenced-brokers")))
        else:
            _unregister(client, broker_id)
    return 0


def _list_endpoints(brokers: list[BrokerAt]) -> None:
    rows = [
        (
            str(one.node_id),
            one.host,
            str(one.port),
            "null" if one.rack is None else one.rack,
            "fenced" if one.is_fenced else "unfenced",
            "broker",
        )
        for one in brokers
    ]
    hosts = max((len(row[1]) for row in rows), default=0)
    racks = max((len(one.rack) for one in brokers if one.rack is not None), default=NO_RACK_WIDTH)
    widths = (NUMBER_WIDTH, hosts, NUMBER_WIDTH, racks, NUMBER_WIDTH, TYPE_WIDTH)
    for row in (HEADERS, *rows):
        print(" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)))


def _unregister(client: ClusterClient, broker_id: int) -> None:
    """A cluster that has no such API, as those with ZooKeeper, is no error to Kafka's tool."""
    try:
        unregister(client, broker_id)
    except UnsupportedByBroker:
        print("The target cluster does not support the broker unregistration API.")
        return
    print(f"Broker {broker_id} is no longer registered.")
