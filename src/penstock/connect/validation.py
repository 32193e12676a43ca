"""A connector's configuration checked, setting by setting: what `/connector-plugins/{class}/config/validate` answers, and why a
configuration is refused. The bodies and messages are Kafka Connect's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from penstock.connect import common_settings as common
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.findings import (
    Finding,
    Verdict,
    first_of,
    laid_out,
    look,
    renamed,
    tell_version,
    with_default,
)
from penstock.connect.interface import Configured, Connector, Plugin, SourceConnector, Transformation
from penstock.connect.plugins import (
    CONVERTER,
    HEADER_CONVERTER,
    PREDICATE,
    SINK,
    SOURCE,
    TRANSFORMATION,
    Plugins,
    loaded,
)
from penstock.connect.providers import Providers
from penstock.connect.settings import Kind, Setting, Settings
from penstock.connect.tasks.clients import refused_overrides
from penstock.connect.tasks.settings import WorkerSettings, with_prefix

Given = Mapping[str, str | None]
HINT: Final = "\nYou can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
NULL: Final = "Null value can not be supplied as the configuration value."
NO_REGEX_OR_TOPICS: Final = "Must configure one of topics or topics.regex"
BOTH: Final = "topics and topics.regex are mutually exclusive options, but both are set."


class Validation:
    def __init__(self, plugins: Plugins, worker: WorkerSettings, providers: Providers) -> None:
        self._plugins, self._worker, self._providers = plugins, worker, providers

    def connector(self, name: str) -> Plugin:
        """InvalidConfig, with Kafka's text."""
        found = self._plugins.find(name, SOURCE, SINK)
        if found is None:
            known = ", ".join(
                f"{{class='{one.name}', version='{one.version}', type={one.kind}}}"
                for one in self._plugins.all(SOURCE, SINK)
            )
            raise InvalidConfig(
                f"Failed to find any class that implements Connector and which name matches {name}, "
                f"available connectors are: {known}"
            )
        return found

    def connector_of(self, config: Given) -> Plugin:
        named = config.get(common.CLASS)
        if not named:
            said = ", ".join(f"{key}={text}" for key, text in config.items())
            raise InvalidConfig(f"Connector config {{{said}}} contains no connector type")
        return self.connector(named)

    def check(self, config: Given) -> Verdict:
        """InvalidConfig where it does not even say of which connector it is."""
        plugin = self.connector_of(config)
        connector = cast(type[Connector], loaded(plugin))
        given = {name: text for name, text in config.items() if text is not None}
        given = self._providers.resolved(given)
        findings = self._findings(common.settings_of(plugin.kind), given)
        by_name = {finding.setting.name: finding for finding in findings}
        findings += self._chains(given, by_name)
        own = self._findings(connector.settings, given)
        by_name |= {finding.setting.name: finding for finding in own}
        findings += own
        self._of_kind(plugin, connector, given, by_name)
        self._of_worker(plugin, by_name)
        self._of_connector(connector, given, by_name, findings)
        findings += self._overrides(given)
        findings += self._converters(given, by_name)
        self._nulls(config, by_name, findings)
        secrets = self._providers.secrets(config)
        for finding in findings:
            finding.errors = [secrets.hidden(error) for error in finding.errors]
            if self._providers.refers(config.get(finding.setting.name)):
                finding.value = config.get(finding.setting.name)
        return Verdict(str(config[common.CLASS]), _groups(findings), findings)

    def _findings(
        self, settings: Iterable[Setting], given: Mapping[str, str], *, first: int = 1
    ) -> list[Finding]:
        """Each setting by itself; then what depends on the others."""
        found = laid_out(settings, first=first)
        values: dict[str, Any] = {}
        for finding in found:
            values[finding.setting.name] = look(finding, given)
        for finding in found:
            setting = finding.setting
            finding.is_visible = setting.is_visible(values)
            if setting.recommended is not None:
                finding.recommended = [str(one) for one in setting.recommended(values)]
        return found

    def _chains(self, given: Mapping[str, str], by_name: dict[str, Finding]) -> list[Finding]:
        found = []
        aliases = _list(given.get(common.PREDICATES))
        for kind, name in ((TRANSFORMATION, common.TRANSFORMS), (PREDICATE, common.PREDICATES)):
            if _list(given.get(name)) is None:
                continue
            for alias in _list(given.get(name)) or ():
                found += self._link(kind, name, alias, given, aliases or [])
        by_name |= {finding.setting.name: finding for finding in found}
        return found

    def _link(
        self, kind: str, family: str, alias: str, given: Mapping[str, str], predicates: list[str]
    ) -> list[Finding]:
        """A transform or predicate with its own settings, which Kafka lays out by their names."""
        prefix = f"{family}.{alias}."
        found = self._findings(common.transform_settings(alias, is_predicate=kind == PREDICATE), given)
        named, version = found
        self._name_class(named, version, kind)
        if named.value is None:
            return found
        kind_class = self._loaded(named, kind)
        if kind_class is None:
            return found
        own: Settings = kind_class.settings
        if issubclass(kind_class, Transformation):
            own = common.CONDITION_SETTINGS | own
        group = named.group
        for number, finding in enumerate(
            self._prefixed(sorted(own, key=lambda one: one.name), prefix, given), start=2
        ):
            finding.group, finding.order = group, number
            found.append(finding)
            if (
                finding.setting.name == f"{prefix}predicate"
                and finding.value
                and finding.value not in predicates
            ):
                finding.errors.append(
                    f"Invalid value {finding.value} for configuration {prefix}predicate: "
                    "there is no predicate of this name in predicates"
                )
        self._own_check(kind_class, with_prefix(given, prefix), found, prefix)
        return found

    def _prefixed(
        self, settings: Iterable[Setting], prefix: str, given: Mapping[str, str], *, first: int = 1
    ) -> list[Finding]:
        inner = with_prefix(given, prefix)
        found = self._findings(settings, inner, first=first)
        for finding in found:
            setting = finding.setting
            missing = f'Missing required configuration "{setting.name}"'
            finding.errors = [
                error.replace(missing, f'Missing required configuration "{prefix}{setting.name}"')
                for error in finding.errors
            ]
            finding.setting = renamed(setting, prefix)
        return found

    def _name_class(self, finding: Finding, version: Finding | None, *kinds: str) -> None:
        """A class is shown by its name, with those that might stand there."""
        finding.recommended = sorted({one.name for one in self._plugins.all(*kinds)})
        if finding.value is None or finding.errors:
            return
        plugin = self._plugins.find(finding.value, *kinds)
        if plugin is None:
            finding.errors.append(
                f"Invalid value {finding.value} for configuration {finding.setting.name}: "
                f"Class {finding.value} could not be found."
            )
            finding.value = None
            return
        finding.value = plugin.name
        if version is not None:
            tell_version(version, plugin.version)

    def _loaded(self, finding: Finding, *kinds: str) -> type[Configured] | None:
        try:
            return self._plugins.load(finding.value or "", *kinds)
        except InvalidConfig as error:
            finding.errors.append(
                f"Invalid value {finding.value} for configuration {finding.setting.name}: {error}"
            )
            return None

    def _own_check(
        self, kind: type[Configured], inner: Mapping[str, str], found: list[Finding], prefix: str
    ) -> None:
        """What the table cannot say shows when it is configured."""
        if any(finding.errors for finding in found):
            return
        try:
            kind().configure(inner)
        except InvalidConfig as error:
            found[0].errors.append(str(error))
        except Exception as error:
            found[0].errors.append(f"{type(error).__name__}: {error}")

    def _of_kind(
        self,
        plugin: Plugin,
        connector: type[Connector],
        given: Mapping[str, str],
        by_name: Mapping[str, Finding],
    ) -> None:
        if plugin.kind == SINK:
            topics, regex = given.get(common.TOPICS, "").strip(), given.get(common.REGEX, "").strip()
            refusal = NO_REGEX_OR_TOPICS if not topics and not regex else BOTH if topics and regex else None
            if refusal is not None:
                by_name[common.TOPICS].errors.append(refusal)
                by_name[common.REGEX].errors.append(refusal)
            dead = given.get(common.DEAD_LETTERS, "").strip()
            if dead and dead in (_list(topics) or ()):
                by_name[common.TOPICS].errors.append(
                    f"The DLQ topic '{dead}' may not be included in the list of topics ('topics={topics}') consumed by the "
                    "connector"
                )
            return
        _once(connector, given, by_name, self._worker)

    def _of_worker(self, plugin: Plugin, by_name: Mapping[str, Finding]) -> None:
        """Where the configuration says nothing the worker's properties count."""
        tell_version(by_name[common.VERSION], plugin.version)
        for name in common.CONVERTERS:
            finding = by_name[name]
            default = self._worker.properties.get(name) or DEFAULT_CONVERTERS[name]
            kinds = (CONVERTER,) if name != "header.converter" else (HEADER_CONVERTER,)
            known = self._plugins.find(default, *kinds)
            finding.setting = with_default(finding.setting, known.name if known is not None else default)
            version = by_name[f"{name}.plugin.version"]
            if finding.value is None and not finding.errors:
                finding.value = finding.setting.default
            self._name_class(finding, version, *kinds)
            version.is_visible = finding.value is not None

    def _of_connector(
        self, connector: type[Connector], given: Mapping[str, str], by_name: Mapping[str, Finding],
        findings: list[Finding],
    ) -> None:  # fmt: skip
        if any(finding.errors for finding in by_name.values() if finding.setting.name in connector.settings):
            return
        try:
            told = connector.check(given)
        except (InvalidConfig, ConnectError) as error:
            told = {common.CLASS: [str(error)]}
        for name, errors in told.items():
            finding = by_name.get(name)
            if finding is None:
                finding = Finding(Setting(name, Kind.STRING, "", default=None), None, -1, given.get(name))
                findings.append(finding)
            finding.errors += [error for error in errors if error not in finding.errors]

    def _overrides(self, given: Mapping[str, str]) -> list[Finding]:
        refused = refused_overrides(self._worker, given)
        found = []
        for name, text in given.items():
            role, _, rest = name.partition(".override.")
            if not rest or role not in ("producer", "consumer", "admin"):
                continue
            kind = Kind.PASSWORD if _is_secret(rest) else Kind.STRING
            setting = Setting(
                name, kind, "A property of the client.", default=None, importance="LOW", display_name=rest
            )
            finding = Finding(setting, None, -1, setting.shown(text))
            if name in refused:
                finding.errors.append(refused[name])
            found.append(finding)
        return found

    def _converters(self, given: Mapping[str, str], by_name: Mapping[str, Finding]) -> list[Finding]:
        """Settings of converters that the configuration itself names."""
        found: list[Finding] = []
        for name in common.CONVERTERS:
            finding = by_name[name]
            if name not in given or finding.value is None or finding.errors:
                continue
            kind = HEADER_CONVERTER if name == "header.converter" else CONVERTER
            loaded_class = self._loaded(finding, kind)
            if loaded_class is not None:
                role = {f"{name}.converter.type": name.removesuffix(".converter")}
                found += self._prefixed(
                    loaded_class.settings, f"{name}.", {**given, **role}, first=first_of(kind)
                )
        return found

    def _nulls(self, config: Given, by_name: Mapping[str, Finding], findings: list[Finding]) -> None:
        for name, text in config.items():
            if text is not None:
                continue
            finding = by_name.get(name)
            if finding is None:
                finding = Finding(Setting(name, Kind.STRING, "", default=None), None, -1)
                findings.append(finding)
            finding.errors.append(NULL)


DEFAULT_CONVERTERS: Final = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
}


def _once(
    connector: type[Connector],
    given: Mapping[str, str],
    by_name: Mapping[str, Finding],
    worker: WorkerSettings,
) -> None:
    assert issubclass(connector, SourceConnector)
    required, boundary = by_name[common.EXACTLY_ONCE], by_name[common.BOUNDARY]
    if (given.get(common.EXACTLY_ONCE) or "").strip().lower() == "required" and not required.errors:
        supports = _asked(lambda: connector().exactly_once_support(given))
        if not worker.is_exactly_once:
            required.errors.append("This worker does not have exactly-once source support enabled.")
        elif supports is None:
            required.errors.append(
                "The connector does not say whether it supports exactly-once semantics. If its documentation says so, use the "
                'value "requested" for this property.'
            )
        elif not supports:
            required.errors.append(
                "The connector does not support exactly-once semantics with the provided configuration."
            )
    if (given.get(common.BOUNDARY) or "").strip().lower() == "connector" and not _asked(
        lambda: connector().can_define_transactions(given)
    ):
        boundary.errors.append(
            "The connector does not support connector-defined transaction boundaries with the given configuration. Please "
            "reconfigure it to use a different transaction boundary definition."
        )


def _asked(question: Callable[[], bool | None]) -> bool | None:
    try:
        return question()
    except Exception:
        return None  # the configuration has other mistakes, which are told


def _groups(findings: Iterable[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.group for finding in findings if finding.group is not None))


def _list(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_secret(name: str) -> bool:
    return "password" in name or name.endswith((".key", "jaas.config", "secret"))
