"""Configurations of connectors, as far as they can be judged without a worker: which class, and each setting by itself.

What a connector finds out by asking somebody (a database, a folder) is left to the worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from penstock.connect import common_settings as common
from penstock.connect.errors import InvalidConfig
from penstock.connect.findings import laid_out, look
from penstock.connect.plugins import EXCLUDED, SINK, SOURCE, loaded, plugins_of, split_path
from penstock.connect.settings import Setting
from penstock.stack.description.forms import nearest

REFERENCE = "${"
"""Of a value that a provider will put in: nobody knows it yet."""
OTHERS = (
    "transforms.", "predicates.", "producer.override.", "consumer.override.", "admin.override.", "topic.creation.",
    "key.converter.", "value.converter.", "header.converter.", "errors.",
)  # fmt: skip
SURELY = 0.85
"""How like a known name an unknown one must be to be taken for a mistake: workers ignore what they do not know."""


def connector_problems(config: Mapping[str, str], worker: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(name, what is wrong). `worker`: its settings. ModuleNotFoundError where Connect's packages are not installed."""
    plugins = plugins_of(split_path(worker.get("plugin.path")), split_path(worker.get(EXCLUDED)))
    named = config[common.CLASS]
    plugin = plugins.find(named, SOURCE, SINK)
    if plugin is None:
        known = [one.name for one in plugins.all(SOURCE, SINK)]
        simple = {name.rpartition(".")[2]: name for name in known}
        hint = nearest(named, known) or simple.get(nearest(named.rpartition(".")[2], list(simple)) or "")
        yield common.CLASS, f"there is no connector {named}" + (f"; did you mean {hint}?" if hint else "")
        return
    try:
        own = loaded(plugin).settings
    except InvalidConfig as error:
        yield common.CLASS, str(error)
        return
    settings: list[Setting] = [*common.settings_of(plugin.kind), *own]
    for finding in laid_out(settings):
        look(finding, config)
        if REFERENCE not in config.get(finding.setting.name, ""):
            for problem in finding.errors:
                yield finding.setting.name, problem
    names = [setting.name for setting in settings]
    for name in config:
        if name not in names and not name.startswith(OTHERS):
            near = get_close_matches(name, names, n=1, cutoff=SURELY)
            if near:
                yield name, f"the connector has no `{name}`; did you mean `{near[0]}`?"
