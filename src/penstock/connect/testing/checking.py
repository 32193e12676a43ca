"""A configuration checked as a worker checks it, for a connector that need not be installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.connect.common_settings import CLASS, NAME, REGEX, TOPICS
from penstock.connect.errors import InvalidConfig
from penstock.connect.interface import Connector, Plugin, SinkConnector
from penstock.connect.plugins import SINK, SOURCE, Plugins
from penstock.connect.providers import Providers
from penstock.connect.tasks.settings import WorkerSettings
from penstock.connect.validation import Validation

TEST_NAME: Final = "test"
TEST_TOPIC: Final = "topic"


class PluginsAnd(Plugins):
    """Those that are installed, and one class."""

    def __init__(self, found: type[Connector]) -> None:
        super().__init__()
        kind = SINK if issubclass(found, SinkConnector) else SOURCE
        self._one = Plugin(name_of(found), kind, found.version, lambda: found)

    def find(self, name: str, *kinds: str) -> Plugin | None:
        if name.strip() == self._one.name and (not kinds or self._one.kind in kinds):
            return self._one
        return super().find(name, *kinds)


def name_of(found: type[Connector]) -> str:
    return f"{found.__module__}.{found.__qualname__}"


def completed(connector: type[Connector], config: Mapping[str, str]) -> dict[str, str]:
    """With what every configuration has: a name, a class, and topics for a sink."""
    found = {NAME: TEST_NAME, CLASS: name_of(connector), **config}
    if issubclass(connector, SinkConnector) and TOPICS not in found and REGEX not in found:
        found[TOPICS] = TEST_TOPIC
    return found


def mistakes_in(connector: type[Connector], config: Mapping[str, str]) -> dict[str, list[str]]:
    """What is wrong with a configuration, by the names of settings, in the words that a user of the connector reads. Nothing:
    a worker takes it. `name`, `connector.class` and a sink's `topics` may be left out."""
    validation = Validation(PluginsAnd(connector), WorkerSettings({}), Providers({}))
    verdict = validation.check(completed(connector, config))
    return {finding.setting.name: finding.errors for finding in verdict.findings if finding.errors}


def check(connector: type[Connector], config: Mapping[str, str]) -> None:
    """InvalidConfig, with all mistakes."""
    found = mistakes_in(connector, config)
    if found:
        said = [f"{name}: {error}" for name, errors in found.items() for error in errors]
        raise InvalidConfig("\n".join(said))
