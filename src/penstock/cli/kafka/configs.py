"""kafka-configs: the settings of topics, brokers, groups, client metrics, users, clients and IP addresses."""

import re

from penstock.admin.configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    Change,
    alter_configs,
    configured,
    describe_configs,
)
from penstock.admin.groups.requests import open_groups
from penstock.admin.topics import topic_names
from penstock.cli.kafka import quota_configs, tool
from penstock.cli.kafka.address import ZK_TLS_CONFIG, ZOOKEEPER, cluster_client, connection, is_addressed
from penstock.cli.kafka.config_entities import DYNAMIC_SOURCES, Entity, chosen_entity
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, UsageError
from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused, UserError
from penstock.client.property_files import read_properties

# A comma or an equals sign counts only outside of square brackets.
OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
LEGAL_KEY = re.compile(r"[a-zA-Z0-9._-]*")
LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
KINDS = {"topics": TOPIC, "brokers": BROKER, "groups": GROUP, "client-metrics": CLIENT_METRICS}

TABLE = OptionTable(
    "kafka-configs",
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, "
    "client-metrics or group",
    [
        Option(
            "bootstrap-server",
            "Where to connect: one or more brokers of the cluster.",
            "HOST:PORT[,HOST:PORT…]",
        ),
        Option("bootstrap-controller", "Where the controllers are; not in use here yet.", "HOST:PORT"),
        Option("describe", "Print the settings."),
        Option("alter", "Change settings, with --add-config, --add-config-file or --delete-config."),
        Option("all", "With describe: all settings, not only those that were set on the entity itself."),
        Option(
            "entity-type",
            "What the settings belong to: topics, brokers, groups, client-metrics, users, clients, ips "
            "(broker-loggers are for later versions). Users and clients may be given both.",
            "TYPE",
        ),
        Option(
            "entity-name",
            "Its name: a topic, a broker's id, a group, a user, a client id, an address.",
            "NAME",
        ),
        Option(
            "entity-default",
            "The settings of all brokers, or of each user, client id or address without its own.",
        ),
        Option(
            "add-config", "Settings to add; square brackets around a value with commas.", "K=V,K2=[V,V],…"
        ),
        Option("add-config-file", "A properties file with settings to add.", "FILE"),
        Option("delete-config", "Settings to take back.", "K,K2,…"),
        Option("topic", "Short for --entity-type topics --entity-name.", "NAME"),
        Option("broker", "Short for --entity-type brokers --entity-name.", "ID"),
        Option("broker-defaults", "Short for --entity-type brokers --entity-default."),
        Option("broker-logger", "Short for --entity-type broker-loggers --entity-name.", "ID"),
        Option("client", "Short for --entity-type clients --entity-name.", "ID"),
        Option("client-defaults", "Short for --entity-type clients --entity-default."),
        Option("client-metrics", "Short for --entity-type client-metrics --entity-name.", "NAME"),
        Option("group", "Short for --entity-type groups --entity-name.", "NAME"),
        Option("ip", "Short for --entity-type ips --entity-name.", "IP"),
        Option("ip-defaults", "Short for --entity-type ips --entity-default."),
        Option("user", "Short for --entity-type users --entity-name.", "NAME"),
        Option("user-defaults", "Short for --entity-type users --entity-default."),
        Option("force", "Do not ask.", old=True),
        ZOOKEEPER,
        ZK_TLS_CONFIG,
    ],
    examples=[
        "kafka-configs --bootstrap-server localhost:9092 --topic orders --describe",
        "kafka-configs --bootstrap-server localhost:9092 --topic orders --alter --add-config retention.ms=60000",
        "kafka-configs --bootstrap-server localhost:9092 --user ana --client app --alter --add-config producer_byte_rate=5000000",
    ],
)


def execute(given: Options) -> int:
    entity = _checked(given)
    try:
        if given.has("alter"):
            return _alter(given, entity)
        return _describe(given, entity)
    except Refused as error:
        arguments = " ".join(given.argv)
        tool.complain(f"Error while executing config command with args '{arguments}'")
        tool.complain(f"{error.exception_name}: {error}")
        return 1


def _checked(given: Options) -> Entity:
    if given.has("describe") + given.has("alter") != 1:
        raise UsageError("Command must include exactly one action: --describe, --alter")
    entity = chosen_entity(given)
    if entity.kind == "ips" and entity.name:
        quota_configs.check_address(entity.name)
    if not is_addressed(given):
        if given.has("bootstrap-controller"):
            raise UserError("--bootstrap-controller is not in use here yet: use --bootstrap-server")
        raise OptionError("Either --bootstrap-server or --bootstrap-controller must be specified.")
    if given.has("bootstrap-controller"):
        raise OptionError("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    if given.has("alter"):
        _check_alter(given, entity)
    return entity


def _check_alter(given: Options, entity: Entity) -> None:
    if entity.kind in ("users", "clients", "brokers", "ips"):
        if any(each.name is None for each in entity.parts):
            raise OptionError(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not entity.name:
        raise OptionError(f"An entity name must be specified with --alter of {entity.kind}")
    if given.has("add-config") and given.has("add-config-file"):
        raise OptionError("Only one of --add-config or --add-config-file must be specified")
    if not any(given.has(name) for name in ("add-config", "add-config-file", "delete-config")):
        raise OptionError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )


def parse_added(given: Options) -> dict[str, str]:
    path = given.value("add-config-file")
    added = dict(read_properties(path)) if path else {}
    text = given.value("add-config")
    if text is not None:
        for word in re.split("," + OUTSIDE_BRACKETS, text):
            pair = re.split(r"\s*=\s*" + OUTSIDE_BRACKETS, word)
            if len(pair) != 2:
                raise OptionError(
                    "requirement failed: Invalid entity config: all configs to be added must be in the format "
                    '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
                )
            added[pair[0].strip()] = re.sub(r"\[?\]?", "", pair[1]).strip()
    for key in added:
        if not LEGAL_KEY.fullmatch(key):
            raise OptionError(f"Invalid character found for config key: {key}")
    return added


def _check_topic_name(entity: Entity) -> None:
    name = entity.name or ""
    if entity.kind == "topics" and name and not (LEGAL_TOPIC.fullmatch(name) and len(name) < 250):
        raise OptionError(_topic_complaint(name))


def _topic_complaint(name: str) -> str:
    if len(name) >= 250:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length 249"
    return (
        f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
        "'.', '_' and '-'"
    )


def _alter(given: Options, entity: Entity) -> int:
    deleted = [key.strip() for word in given.values("delete-config") for key in word.split(",")]
    change = Change(parse_added(given), deleted)
    _check_topic_name(entity)
    with cluster_client(given) as client:
        if entity.kind in quota_configs.TYPES:
            quota_configs.alter(client, entity, change)
        else:
            alter_configs(client, KINDS[entity.kind], entity.name or "", change)
    if entity.name:
        print(f"Completed updating config for {entity.kind[:-1]} {entity.name}.")
    else:
        print(f"Completed updating default config for {entity.kind} in the cluster.")
    return 0


def _describe(given: Options, entity: Entity) -> int:
    _check_topic_name(entity)
    every = given.has("all")
    cluster = connection(given)
    with ClusterClient(cluster) as client:
        if entity.kind in quota_configs.TYPES:
            quota_configs.describe(client, entity)
            return 0
        known = _known(cluster, client, entity.kind)
        for name in known if entity.name is None else [entity.name]:
            # Whether or not there is such a group, it has configs: those that it would get.
            if name in known or (every and entity.kind in ("groups", "client-metrics")):
                _describe_one(client, Entity(entity.kind, name), every=every)
            else:
                print(f"The {entity.kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
    return 0


def _known(cluster: Connection, client: ClusterClient, kind: str) -> list[str]:
    """The names of what there is; of brokers, "" for all of them comes last."""
    if kind == "topics":
        return topic_names(client)
    if kind == "brokers":
        return [*map(str, sorted(node.node_id for node in client.nodes())), ""]
    names = set(configured(client, KINDS[kind]))
    if kind == "groups":
        with open_groups(cluster) as groups:
            names.update(listed.group_id for listed in groups.listing())
    return sorted(names)


def _describe_one(client: ClusterClient, entity: Entity, *, every: bool) -> None:
    if entity.name:
        print(f"{'All' if every else 'Dynamic'} configs for {entity.kind[:-1]} {entity.name} are:")
    else:
        print(f"Default configs for {entity.kind} in the cluster are:")
    for setting in describe_configs(client, KINDS[entity.kind], entity.name or ""):
        if every or setting.source == DYNAMIC_SOURCES[entity.kind, not entity.name]:
            synonyms = ", ".join(
                f"{synonym.source_name}:{synonym.name}={_text(synonym.value)}" for synonym in setting.synonyms
            )
            sensitive = "true" if setting.is_sensitive else "false"
            print(f"  {setting.name}={_text(setting.value)} sensitive={sensitive} synonyms={{{synonyms}}}")


def _text(value: str | None) -> str:
    return "null" if value is None else value
