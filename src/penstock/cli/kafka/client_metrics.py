"""kafka-client-metrics: which clients push which of their metrics to the brokers (KIP-714)."""

from penstock.admin.configs import CLIENT_METRICS, Change, alter_configs, configured, describe_configs
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.client.errors import Refused

ACTIONS = ("alter", "delete", "describe", "list")
SETTINGS = {"interval": "interval.ms", "metrics": "metrics", "match": "match"}
SELECTORS = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

TABLE = OptionTable(
    "kafka-client-metrics",
    "This tool helps to manipulate and describe client metrics configurations.",
    [
        Option("alter", "Add a subscription, or change one."),
        Option("delete", "Delete a subscription."),
        Option("describe", "Print one subscription, or all."),
        Option("list", "List the names of the subscriptions."),
        Option("name", "The subscription's name.", "NAME"),
        Option("generate-name", "With alter: pick a name."),
        Option("interval", "How often clients push, in milliseconds; empty for the default.", "MS"),
        Option(
            "match",
            f"Which clients, as selectors with patterns that must all match: {', '.join(SELECTORS)}.",
            "K1=V1,K2=V2",
        ),
        Option("metrics", "Prefixes of the names of metrics; * for all.", "M1,M2"),
    ],
    examples=[
        "kafka-client-metrics --bootstrap-server localhost:9092 --alter --name producers --interval 30000 "
        "--metrics org.apache.kafka.producer. --match client_id=billing-.*",
        "kafka-client-metrics --bootstrap-server localhost:9092 --describe",
    ],
)


def execute(given: Options) -> int:
    _check(given)
    try:
        if given.has("alter"):
            _alter(given)
        elif given.has("delete"):
            _delete(given)
        elif given.has("describe"):
            _describe(given)
        else:
            with cluster_client(given) as client:
                print("\n".join(configured(client, CLIENT_METRICS)))
    except Refused as error:
        print(f"Error while executing client metrics command : {error}", flush=True)
        return 1
    return 0


def _check(given: Options) -> None:
    if sum(given.has(action) for action in ACTIONS) != 1:
        raise UsageError("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if not given.has("bootstrap-server"):
        raise OptionError("--bootstrap-server must be specified.")
    of_alter = ["generate-name", *SETTINGS]
    given.refuse_with("delete", of_alter)
    given.refuse_with("describe", of_alter)
    given.refuse_with("list", ["name", *of_alter])
    if given.has("alter") and given.has("name") == given.has("generate-name"):
        raise OptionError("One of --name or --generate-name must be specified with --alter.")
    if given.has("delete") and not given.has("name"):
        raise OptionError("A client metrics resource name must be specified with --delete.")
    interval = given.value("interval")
    if interval and not interval.removeprefix("-").isdecimal():
        raise OptionError("Invalid interval value. Enter an integer, or leave empty to reset.")


def _alter(given: Options) -> None:
    name = given.value("name") or _new_name()
    asked = {key: given.value(option) or "" for option, key in SETTINGS.items() if given.has(option)}
    change = Change(
        {key: value for key, value in asked.items() if value},
        [key for key, value in asked.items() if not value],
    )
    with cluster_client(given) as client:
        alter_configs(client, CLIENT_METRICS, name, change)
    print(f"Altered client metrics config for {name}.")


def _new_name() -> str:
    import secrets

    from penstock.model.ids import id_text

    return id_text(secrets.token_bytes(16))


def _delete(given: Options) -> None:
    name = given.value("name") or ""
    with cluster_client(given) as client:
        alter_configs(client, CLIENT_METRICS, name, Change({}, list(SETTINGS.values())))
    print(f"Deleted client metrics config for {name}.")


def _describe(given: Options) -> None:
    only = given.value("name")
    with cluster_client(given) as client:
        known = configured(client, CLIENT_METRICS)
        for name in known if only is None else [only]:
            if name not in known:
                print(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
                continue
            print(f"Client metrics configs for {name} are:")
            for entry in describe_configs(client, CLIENT_METRICS, name):
                print(f"  {entry.name}={entry.value}")
