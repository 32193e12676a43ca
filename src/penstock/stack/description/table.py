"""What may stand in `penstock.yaml`: one table for checks, for the schema that editors take, and for the page of reference.

The services come from the table of services, so that a new one can be said here without another word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.config.option import ConfigError
from penstock.config.topic_options import SCHEMA_OPTIONS, TOPIC_OPTIONS, topic_option
from penstock.controller.names import why_invalid
from penstock.model.internal_topics import is_internal
from penstock.schemas.compatibility import LEVELS
from penstock.schemas.model import AVRO, JSON, PROTOBUF
from penstock.stack import brokers, connect, sql_server
from penstock.stack.description.forms import (
    Entry,
    Listing,
    Named,
    Options,
    Section,
    Text,
    Whole,
    YesNo,
    nearest,
)
from penstock.stack.stack import DEFAULT_DATA, LOOPBACK, Service

MAX_PARTITIONS = 100_000
MAX_VERSION = 2**31 - 1
FILE_KEYS = {brokers.NAME: "brokers"}
"""Of services that are called otherwise in the file."""


def key_of(service: Service) -> str:
    return FILE_KEYS.get(service.name, service.name)


def topic_config_problem(name: str, value: str) -> str | None:
    option = topic_option(name)
    if option is None:
        hint = nearest(name, [*TOPIC_OPTIONS, *SCHEMA_OPTIONS])
        return f"topics have no config `{name}`" + (f"; did you mean `{hint}`?" if hint else "")
    try:
        option.parse(value)
    except ConfigError as error:
        return str(error)
    return None


def topic_name_problem(name: str) -> str | None:
    reason = why_invalid(name)
    if reason is not None:
        return f"a topic cannot be called so: {reason}"
    if is_internal(name):
        return f"`{name}` is Kafka's own: the brokers make it (settings of brokers such as offsets.topic.… change it)"
    return None


def _topic_docs() -> Mapping[str, str]:
    return {name: option.doc for name, option in {**TOPIC_OPTIONS, **SCHEMA_OPTIONS}.items()}


TOPIC = Section((
    Entry("partitions", Whole(1, MAX_PARTITIONS), "How many partitions. More can be added later; fewer cannot be had.",
          "num.partitions of the brokers"),
    Entry("replication", Whole(1, brokers.MAX_BROKERS), "How many copies of each partition; no more than there are brokers.",
          "default.replication.factor of the brokers"),
    Entry("configs", Options(topic_config_problem, known=_topic_docs, is_closed=True),
          "Configs of the topic, such as retention.ms."),
))  # fmt: skip
REFERENCE = Section((
    Entry("name", Text(), "How the schema names the other one."),
    Entry("subject", Text(), "The subject of the other one."),
    Entry("version", Whole(1, MAX_VERSION), "Its version."),
))  # fmt: skip
SCHEMA = Section((
    Entry("file", Text("a file"), "The file of the schema, from the folder of this file on."),
    Entry("type", Text(choices=(AVRO, JSON, PROTOBUF)), "What kind of schema it is.",
          "by the file's ending: .avsc, .json, .proto"),
    Entry("compatibility", Text(choices=LEVELS), "How a new version must go with older ones.", "that of the registry"),
    Entry("references", Listing(REFERENCE), "Schemas of other subjects that it names."),
))  # fmt: skip
CONNECTOR = Section((
    Entry("file", Text("a file"), "A file with its configuration: properties, or JSON as Connect takes it."),
    Entry("config", Options(), "Its configuration, here; what stands here counts more than the file."),
))  # fmt: skip
MORE = {
    connect.NAME: (
        Entry("connectors", Named(CONNECTOR),
              "Connectors by their names. One that is there gets the configuration that is here."),
    ),
    sql_server.NAME: (
        Entry("script", Text("a file"), "Statements that run when the server is up. What is there already is not run again."),
    ),
}  # fmt: skip
"""What services have in the file beside their members."""


def _docs_of(service: Service) -> Mapping[str, str]:
    """None where the packages of the service's extra are not there."""
    try:
        return service.setting_docs() if service.setting_docs is not None else {}
    except ModuleNotFoundError:
        return {}


def _service_section(service: Service) -> Section:
    entries = []
    if max(service.counts) > 1:
        counts = service.counts
        bounds = (
            Whole(max(1, counts[0]), counts[-1])
            if isinstance(counts, range)
            else Whole(min(counts), max(counts), choices=counts)
        )
        default = str(service.default_count or 1)
        entries.append(Entry("count", bounds, f"How many {service.plural}.", default))
    which = "first port, the others follow" if max(service.counts) > 1 else "port"
    entries.append(Entry("port", Whole(0, 65535), f"Its {which}; 0 takes a free one.", str(service.port)))
    if service.setting_problem is not None:
        form = Options(service.setting_problem, known=lambda: _docs_of(service))
        entries.append(Entry("settings", form, f"Properties of {service.title}."))
    return Section((*entries, *MORE.get(service.name, ())), is_switch=service.default_count == 0)


def root(services: Sequence[Service]) -> Section:
    """The table of the file."""
    of_services = [
        Entry(
            key_of(service),
            _service_section(service),
            f"{service.title[0].upper()}{service.title[1:]}.",
            "one" if service.default_count else "none",
        )
        for service in services
    ]
    return Section(
        (
            Entry("name", Text("a name of small letters, digits, - and _", pattern=r"[a-z0-9][a-z0-9_-]*"),
                  "The stack's name, for compose.yaml.", "that of the folder"),
            Entry("data", Text("a folder"), "Where everything is kept, from the folder of this file on.", DEFAULT_DATA),
            Entry("listen", Text("an address"),
                  "The address on which everything listens but ZooKeeper; 0.0.0.0 is all.", LOOPBACK),
            Entry("secure", YesNo(), "With TLS, logins and access rules.", "false"),
            *of_services,
            Entry("topics", Named(TOPIC, topic_name_problem), "Topics by their names."),
            Entry("schemas", Named(SCHEMA), "Schemas by their subjects, such as orders-value."),
        ),
        is_open=True,
    )  # fmt: skip
