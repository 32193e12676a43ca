"""A broker's configuration through Kafka's layers, from weakest to strongest:

    default < static (file, --set) < dynamic for the whole cluster < dynamic for this broker < topic override

Within a layer some names mean one setting (`log.retention.hours`, `log.retention.ms`): the finer unit wins.
Across layers the stronger one wins, whatever the unit: a dynamic `log.retention.ms` hides a static
`log.retention.minutes`.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from penstock.config.broker_options import BROKER_OPTIONS, broker_synonyms
from penstock.config.client_metrics_options import CLIENT_METRICS_OPTIONS
from penstock.config.entry import (
    CLIENT_METRICS_CONFIG,
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    GROUP_CONFIG,
    STATIC_BROKER_CONFIG,
    TOPIC_CONFIG,
    ConfigEntry,
    Synonym,
)
from penstock.config.group_options import GROUP_OPTIONS
from penstock.config.option import READ_ONLY, ConfigError, Kind, Option
from penstock.config.report import Report
from penstock.config.topic_options import (
    INTERNAL_OPTIONS,
    INTERNAL_SEGMENT_BYTES,
    SCHEMA_OPTIONS,
    TOPIC_OPTIONS,
    topic_option,
)

SEGMENT_BYTES: Final = "segment.bytes"
LEAST_SEGMENT_BYTES: Final = 14
"""Of releases of Apache Kafka before 4, which take smaller segments than later ones."""
MISTAKES_KEEP: Final[Mapping[str, Any]] = {
    "cleanup.policy": [], "retention.bytes": -1, "retention.ms": -1, "unclean.leader.election.enable": False,
}  # fmt: skip
"""What is used where a topic's stored value cannot be read: the broker's own could delete what somebody wanted to keep."""


class BrokerConfig:
    """All layers of one broker. Static values are complete once it has started; `set_dynamic` replaces the dynamic ones."""

    __slots__ = ("_effective", "_values", "dynamic_broker", "dynamic_default", "static")

    def __init__(self, static: Mapping[str, str]) -> None:
        """ConfigError where a static value does not parse. `loading.load` also reports on unknown names."""
        self.static: dict[str, str] = dict(static)
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        self._effective: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self._resolve()

    # --- typed values

    def get(self, name: str) -> Any:
        """The typed value of a broker option; None for an option that has neither a value nor a default."""
        if name in self._values:
            return self._values[name]
        return BROKER_OPTIONS[name].default

    def is_set(self, name: str) -> bool:
        """Whether any layer above the default gives `name` a value."""
        return name in self._effective

    def of_listener(self, listener: str, prefixes: tuple[str, ...]) -> dict[str, str]:
        """The options with these prefixes, as texts: a listener's own (`listener.name.internal.ssl.…`) before plain ones."""
        own = f"listener.name.{listener.lower()}."
        texts = {name: text for name, text in self._effective.items() if name.startswith(prefixes)}
        for name, text in self._effective.items():
            if name.startswith(own) and name[len(own) :].startswith(prefixes):
                texts[name[len(own) :]] = text
        return texts

    def static_of_listener(self, listener: str, prefixes: tuple[str, ...]) -> dict[str, str]:
        """As `of_listener`, without what was changed while a broker ran."""
        return BrokerConfig(self.static).of_listener(listener, prefixes)

    @property
    def node_id(self) -> int:
        return int(self.get("node.id"))

    @property
    def log_dirs(self) -> list[str]:
        return list(self.get("log.dirs") or self.get("log.dir"))

    @property
    def listeners(self) -> list[str]:
        """What to bind. Kafka's controller listeners are left out: nothing of ours would answer there."""
        return self._without_controllers("listeners")

    @property
    def advertised_listeners(self) -> list[str]:
        """What to tell clients; empty where each is to be told the address it connected to."""
        return self._without_controllers("advertised.listeners")

    def _without_controllers(self, name: str) -> list[str]:
        controllers = {listener.upper() for listener in self.get("controller.listener.names") or ()}
        return [text for text in self.get(name) or () if text.partition("://")[0].upper() not in controllers]

    def topic_value(self, overrides: Mapping[str, str], name: str) -> Any:
        """The typed value of topic option `name` for a topic with these overrides."""
        option = topic_option(name)
        if option is None:
            raise KeyError(name)
        if name in overrides:
            return self._stored_value(option, overrides[name])
        return self._broker_level_value(option)

    def topic_mistakes(self, overrides: Mapping[str, str]) -> list[str]:
        """Why stored values of a topic are not used as they are; nothing where all are."""
        found = []
        for name, text in sorted(overrides.items()):
            option = topic_option(name)
            if option is None or (name == SEGMENT_BYTES and _is_small_segment(text)):
                continue
            try:
                option.parse(text)
            except ConfigError as error:
                used = option.format(self._stored_value(option, text))
                found.append(f"{error}; used is {used or 'none'}")
        return found

    def _stored_value(self, option: Option, text: str) -> Any:
        """What others have written into the tree, as releases of Apache Kafka before 4 do, need not be what we would take from a
        client. It must not keep a topic from being served: then what the broker has for all topics counts, but where that could
        lose records nothing is deleted."""
        if option.name == SEGMENT_BYTES and _is_small_segment(text):
            return int(text)
        try:
            return option.parse(text)
        except ConfigError:
            if option.name in MISTAKES_KEEP:
                return MISTAKES_KEEP[option.name]
            return self._broker_level_value(option)

    def group_value(self, overrides: Mapping[str, str], name: str) -> Any:
        """The typed value of group option `name` for a group with these overrides."""
        option = GROUP_OPTIONS[name]
        return option.parse(overrides[name]) if name in overrides else self._broker_level_value(option)

    def log_options(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """Typed values of all topic options, by name."""
        values = {name: self.topic_value(overrides, name) for name in TOPIC_OPTIONS}
        if INTERNAL_SEGMENT_BYTES.name in overrides:
            values["segment.bytes"] = INTERNAL_SEGMENT_BYTES.parse(overrides[INTERNAL_SEGMENT_BYTES.name])
        for name, option in SCHEMA_OPTIONS.items():
            values[name] = option.parse(overrides[name]) if name in overrides else option.default
        return values

    def _broker_level_value(self, option: Option) -> Any:
        for synonym, factor in option.synonyms:
            if synonym in self._values:
                value = self._values[synonym]
                if factor != 1:
                    value *= factor
                # Any negative retention time means "for ever", which a topic writes as -1.
                return max(value, -1) if option.name == "retention.ms" else value
        return option.default

    # --- layers

    def put_in_force(self, decided: Mapping[str, str]) -> None:
        """What the program decided at its start, where nobody had: described as if it had been given."""
        self.static.update(decided)
        self._resolve()

    def set_dynamic(self, *, cluster_default: Mapping[str, str], broker: Mapping[str, str]) -> list[Report]:
        """Replaces both dynamic layers.

        A value that does not parse is left out and reported: a stored mistake must not stop a broker's start.
        """
        reports: list[Report] = []
        self.dynamic_default = _usable(cluster_default, reports)
        self.dynamic_broker = _usable(broker, reports)
        self._resolve()
        return reports

    def _resolve(self) -> None:
        effective = dict(self.static)
        for layer in (self.dynamic_default, self.dynamic_broker):
            for name, text in layer.items():
                for synonym in () if name.startswith("listener.name.") else broker_synonyms(name):
                    effective.pop(synonym, None)
                effective[name] = text
        self._values = {
            name: BROKER_OPTIONS[name].parse(text)
            for name, text in effective.items()
            if name in BROKER_OPTIONS
        }
        self._effective = effective

    # --- describing

    def describe_broker(self, names: Container[str] | None = None) -> list[ConfigEntry]:
        """DescribeConfigs of this broker; `names` picks some, None or none of them means all."""
        known = [
            option.name
            for option in BROKER_OPTIONS.values()
            if not option.internal or self.is_set(option.name)
        ]
        known += [name for name in self._effective if name not in BROKER_OPTIONS]
        return [
            self._broker_entry(name, self._synonyms(name))
            for name in sorted(known)
            if not names or name in names
        ]

    def describe_cluster_default(self, names: Container[str] | None = None) -> list[ConfigEntry]:
        """DescribeConfigs of the broker resource without a name: what is set for all brokers."""
        return [
            self._broker_entry(
                name,
                [synonym for synonym in self._synonyms(name) if synonym[2] == DYNAMIC_DEFAULT_BROKER_CONFIG],
                text=text,
            )
            for name, text in sorted(self.dynamic_default.items())
            if not names or name in names
        ]

    def describe_topic(
        self, overrides: Mapping[str, str], names: Container[str] | None = None
    ) -> list[ConfigEntry]:
        """DescribeConfigs of a topic with these overrides."""
        options: Iterable[Option] = TOPIC_OPTIONS.values()
        if not INTERNAL_OPTIONS.keys().isdisjoint(overrides):
            given = [option for name, option in INTERNAL_OPTIONS.items() if name in overrides]
            options = (*options, *given)
        return [
            self._own_entry(option, overrides, TOPIC_CONFIG)
            for option in options
            if not names or option.name in names
        ]

    def describe_group(
        self, overrides: Mapping[str, str], names: Container[str] | None = None
    ) -> list[ConfigEntry]:
        """DescribeConfigs of a group with these overrides, whether or not there is such a group."""
        entries = [
            self._own_entry(option, overrides, GROUP_CONFIG)
            for option in GROUP_OPTIONS.values()
            if not names or option.name in names
        ]
        for entry in entries:
            option = GROUP_OPTIONS[entry.name]
            if not option.synonyms:
                entry.synonyms.append((option.name, option.default_text, DEFAULT_CONFIG))
        return entries

    def describe_client_metrics(
        self, overrides: Mapping[str, str], names: Container[str] | None = None
    ) -> list[ConfigEntry]:
        """DescribeConfigs of a client metrics subscription with these overrides."""
        return [
            self._own_entry(option, overrides, CLIENT_METRICS_CONFIG)
            for option in CLIENT_METRICS_OPTIONS.values()
            if not names or option.name in names
        ]

    def _own_entry(self, option: Option, overrides: Mapping[str, str], source: int) -> ConfigEntry:
        """Of an option that topics, groups or subscriptions have, with these overrides."""
        own = option.name in overrides
        text = option.format(
            self._stored_value(option, overrides[option.name]) if own else self._broker_level_value(option)
        )
        synonyms = self._synonyms(option.synonyms[0][0]) if option.synonyms else []
        if own:
            synonyms.insert(0, (option.name, text, source))
        return ConfigEntry(
            option.name,
            text,
            kind=option.kind,
            read_only=False,
            sensitive=option.sensitive,
            synonyms=synonyms,
            documentation=option.doc,
        )

    def _broker_entry(self, name: str, synonyms: list[Synonym], *, text: str | None = None) -> ConfigEntry:
        exact = BROKER_OPTIONS.get(name)
        # A listener's own option has the type of the plain one.
        option = exact or BROKER_OPTIONS.get(broker_synonyms(name)[-1])
        if text is None:
            text = exact.format(self.get(name)) if exact is not None else self._effective[name]
        return ConfigEntry(
            name,
            text,
            kind=option.kind if option is not None else Kind.UNKNOWN,
            read_only=exact is None or exact.live == READ_ONLY,
            # As Kafka does, a name of unknown type counts as a secret: it may be some plugin's password.
            sensitive=option is None or option.sensitive,
            synonyms=synonyms,
            documentation=exact.doc if exact is not None else None,
        )

    def _synonyms(self, name: str) -> list[Synonym]:
        """Everything that gives `name` a value, strongest first.

        As in Kafka, what comes before the first mention of `name` itself is left out: a topic's
        `retention.ms`, when it stems from `log.retention.hours`, shows no synonym and so counts as a default.
        """
        names = broker_synonyms(name)
        found: list[Synonym] = [
            (synonym, layer[synonym], source)
            for layer, source in (
                (self.dynamic_broker, DYNAMIC_BROKER_CONFIG),
                (self.dynamic_default, DYNAMIC_DEFAULT_BROKER_CONFIG),
                (self.static, STATIC_BROKER_CONFIG),
            )
            for synonym in names
            if synonym in layer
        ]
        for synonym in names:
            option = BROKER_OPTIONS.get(synonym)
            if option is not None and option.default is not None and not option.internal:
                found.append((synonym, option.default_text, DEFAULT_CONFIG))
        while found and found[0][0] != name:
            del found[0]
        return found


def _is_small_segment(text: str) -> bool:
    return text.strip().isdigit() and LEAST_SEGMENT_BYTES <= int(text) < 1024 * 1024


def _usable(layer: Mapping[str, str], reports: list[Report]) -> dict[str, str]:
    usable = {}
    for name, text in layer.items():
        option = BROKER_OPTIONS.get(name)
        try:
            if option is not None and option.live == READ_ONLY:
                raise ConfigError(f"{name} cannot change while a broker runs")
            if option is not None:
                option.parse(text)
        except ConfigError as error:
            reports.append(Report("warning", name, f"a stored broker option is ignored: {error}"))
        else:
            usable[name] = text
    return usable
