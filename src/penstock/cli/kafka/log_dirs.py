"""kafka-log-dirs: what lies in the log directories of the brokers, and how large it is."""

import json

from penstock.admin.brokers import list_brokers, log_dirs
from penstock.cli.kafka import tool
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.options import Option, Options, OptionTable
from penstock.client.wire_client import UnsupportedByBroker

TABLE = OptionTable(
    "kafka-log-dirs",
    "This tool helps to query log directory usage on the specified brokers.",
    [
        Option("describe", "REQUIRED: describe the log directories."),
        Option("topic-list", "Only these topics; all of them where it is left out.", "NAME,NAME,…", ""),
        Option("broker-list", "Only these brokers; all of them where it is left out.", "ID,ID,…", ""),
    ],
    examples=["kafka-log-dirs --bootstrap-server localhost:9092 --describe --topic-list orders"],
)


def execute(given: Options) -> int:
    given.require("bootstrap-server", "describe")
    topics = {name for name in (given.value("topic-list") or "").split(",") if name}
    try:
        wanted = {int(word) for word in (given.value("broker-list") or "").split(",") if word}
    except ValueError as error:
        tool.complain(
            f"--broker-list takes broker ids, such as 0,1,2: {str(error).rpartition(': ')[2]} is none"
        )
        return 1
    cluster = connection(given)
    cluster.check()
    brokers = {broker.node_id: broker for broker in list_brokers(cluster)}
    missing = sorted(wanted - brokers.keys())
    if missing:
        tool.complain(
            f"ERROR: The given brokers do not exist from --broker-list: {','.join(map(str, missing))}. "
            f"Current existent brokers: {','.join(map(str, brokers))}"
        )
        return 1
    chosen = sorted(wanted or brokers)
    print("Querying brokers for log directories information", flush=True)
    described = []
    for broker in chosen:
        try:
            found = log_dirs(cluster, brokers[broker], topics=topics)
        except UnsupportedByBroker:
            tool.complain(f"broker {broker} does not answer DescribeLogDirs")
            return 1
        described.append({"broker": broker, "logDirs": found})
    print(f"Received log directory information from brokers {','.join(map(str, chosen))}")
    print(json.dumps({"brokers": described, "version": 1}, separators=(",", ":"), ensure_ascii=False))
    return 0
