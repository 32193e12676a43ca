"""What is found out about a configuration, setting by setting, in the form of Kafka Connect's answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.connect import common_settings as common
from penstock.connect.errors import InvalidConfig
from penstock.connect.interface import Plugin
from penstock.connect.plugins import CONVERTER, HEADER_CONVERTER, SINK, SOURCE, loaded
from penstock.connect.settings import Kind, Setting

HINT: Final = "\nYou can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
_NUMBERS: Final = frozenset({Kind.INT, Kind.SHORT, Kind.LONG, Kind.DOUBLE})


@dataclass
class Finding:
    """A setting, the value that a configuration gives it, and what is wrong with that."""

    setting: Setting
    group: str | None
    order: int
    value: str | None = None
    recommended: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    is_visible: bool = True

    def definition(self) -> dict[str, Any]:
        return definition(self.setting, self.group, self.order)

    def document(self) -> dict[str, Any]:
        return {
            "definition": self.definition(),
            "value": {
                "name": self.setting.name,
                "value": self.value,
                "recommended_values": self.recommended,
                "errors": self.errors,
                "visible": self.is_visible,
            },
        }


@dataclass
class Verdict:
    name: str
    groups: list[str]
    findings: list[Finding]

    @property
    def errors(self) -> list[str]:
        return [error for finding in self.findings for error in finding.errors]

    def refusal(self) -> str | None:
        """Kafka's text; None for a configuration that can be used."""
        errors = self.errors
        if not errors:
            return None
        head = f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n"
        return head + "\n".join(errors) + HINT

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "error_count": len(self.errors),
            "groups": self.groups,
            "configs": [finding.document() for finding in self.findings],
        }


def definition(setting: Setting, group: str | None, order: int) -> dict[str, Any]:
    return {
        "name": setting.name,
        "type": setting.kind.name,
        "required": setting.is_required,
        "default_value": None if setting.is_required else setting.shown(setting.default),
        "importance": setting.importance,
        "documentation": setting.doc,
        "group": group,
        "order_in_group": order,
        "width": setting.width,
        "display_name": setting.display_name or setting.name,
        "dependents": list(setting.dependents),
    }


def definitions(plugin: Plugin) -> list[dict[str, Any]]:
    """What `/connector-plugins/{plugin}/config` answers."""
    found = laid_out(loaded(plugin).settings, first=first_of(plugin.kind))
    if plugin.kind in (SOURCE, SINK):
        common_ones = laid_out(common.settings_of(plugin.kind))
        for finding in common_ones:
            if finding.setting.name == common.VERSION:
                tell_version(finding, plugin.version)
        found += common_ones
    return [finding.definition() for finding in found]


def first_of(kind: str) -> int:
    """The place of the first setting of a group: Kafka's converters count from 0."""
    return 0 if kind in (CONVERTER, HEADER_CONVERTER) else 1


def laid_out(settings: Iterable[Setting], *, first: int = 1) -> list[Finding]:
    found, counts = [], dict[str, int]()
    for setting in settings:
        if setting.group is None:
            found.append(Finding(setting, None, -1))
            continue
        counts[setting.group] = counts.get(setting.group, 0) + 1
        order = common.ORDER.get(setting.name, counts[setting.group] - 1 + first)
        if setting.group.startswith(("Transforms: ", "Predicates: ")):
            order = counts[setting.group] - 1
        found.append(Finding(setting, setting.group, order))
    return found


def look(finding: Finding, given: Mapping[str, str]) -> Any:
    setting = finding.setting
    text = given.get(setting.name)
    value = None
    try:
        value = setting.parse(text)
        finding.value = setting.shown(value)
    except InvalidConfig as error:
        finding.errors.append(str(error))
        finding.value = _unchecked(setting, text)
        if finding.value is None and setting.check is not None and setting.kind in _NUMBERS:
            finding.errors.append(
                f"Invalid value null for configuration {setting.name}: Value must be non-null"
            )
    return value


def _unchecked(setting: Setting, text: str | None) -> str | None:
    """What was said, where it could be read at all."""
    if text is None:
        return None
    try:
        return setting.shown(Setting(setting.name, setting.kind, "").parse(text))
    except InvalidConfig:
        return None


def tell_version(finding: Finding, version: str) -> None:
    finding.setting = with_default(finding.setting, version)
    finding.recommended = [version]
    if finding.value is None:
        finding.value = version
    elif finding.value != version:
        finding.errors.append(
            f"Invalid value {finding.value} for configuration {finding.setting.name}: there is only version {version}"
        )


def with_default(setting: Setting, default: Any) -> Setting:
    return replace(setting, default=default)


def renamed(setting: Setting, prefix: str) -> Setting:
    return replace(setting, name=prefix + setting.name, display_name=setting.display_name or setting.name)
