"""Which class a configuration names: connectors, converters, header converters, transforms and predicates.

Three sources: the table of those that come along; packages that are installed, by the entry points of the group
`penstock.connect`; modules in the folders of `plugin.path`. As in Kafka a class may be named in full, by its simple name, or by
that without `Connector`, `Converter` and so on. Classes of Kafka Connect are other names of ours. A class of the table is
imported when it is used.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import logging
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Final

import penstock
from penstock.connect.errors import InvalidConfig
from penstock.connect.interface import (
    Configured,
    Converter,
    HeaderConverter,
    Plugin,
    Predicate,
    SinkConnector,
    SourceConnector,
    Transformation,
)
from penstock.connect.plugin_table import TABLE

log = logging.getLogger("penstock.connect")

GROUP: Final = "penstock.connect"
EXCLUDED: Final = "penstock.connect.plugins.excluded"
SOURCE, SINK = "source", "sink"
CONVERTER, HEADER_CONVERTER = "converter", "header_converter"
TRANSFORMATION, PREDICATE = "transformation", "predicate"
CONNECTORS: Final = (SOURCE, SINK)
_SUFFIXES: Final = {
    SOURCE: "Connector",
    SINK: "Connector",
    CONVERTER: "Converter",
    HEADER_CONVERTER: "HeaderConverter",
    TRANSFORMATION: "Transformation",
    PREDICATE: "Predicate",
}
_KINDS: Final[Sequence[tuple[type[Configured], str]]] = (
    (SourceConnector, SOURCE),
    (SinkConnector, SINK),
    (Transformation, TRANSFORMATION),
    (Predicate, PREDICATE),
    (Converter, CONVERTER),
    (HeaderConverter, HEADER_CONVERTER),
)


class Plugins:
    """Threads may share it."""

    def __init__(self, paths: Iterable[str] = (), excluded: Iterable[str] = ()) -> None:
        self.unknown_excluded: list[str] = []
        """Mistakes, at the worker: where tasks run there may be fewer plugins."""
        self._all: list[Plugin] = []
        self._by_name: dict[str, list[Plugin]] = {}
        self._lock = threading.RLock()
        for plugin, others in _from_table():
            self._add(plugin, others)
        for plugin, others in _from_entry_points():
            self._add(plugin, others)
        for path in paths:
            for plugin, others in _from_folder(Path(path)):
                self._add(plugin, others)
        for name in excluded:
            self._take_away(name)

    def all(self, *kinds: str) -> list[Plugin]:
        return sorted((one for one in self._all if not kinds or one.kind in kinds), key=lambda one: one.name)

    def find(self, name: str, *kinds: str) -> Plugin | None:
        """By any of its names. A simple name that two have is nobody's."""
        found = [one for one in self._by_name.get(name.strip(), ()) if not kinds or one.kind in kinds]
        exact = [one for one in found if one.name == name.strip()]
        if exact:
            return exact[0]
        return found[0] if len({one.name for one in found}) == 1 else None

    def load(self, name: str, *kinds: str) -> type[Configured]:
        """InvalidConfig where there is none, or it cannot be imported."""
        found = self.find(name, *kinds)
        if found is None:
            raise InvalidConfig(f"Class {name} could not be found.")
        return loaded(found)

    def _take_away(self, name: str) -> None:
        gone = self._by_name.get(name, [])
        if not gone:
            self.unknown_excluded.append(name)
        self._all = [one for one in self._all if one not in gone]
        self._by_name = {
            known: [one for one in plugins if one not in gone] for known, plugins in self._by_name.items()
        }

    def _add(self, plugin: Plugin, others: Iterable[str]) -> None:
        if any(one.name == plugin.name and one.kind == plugin.kind for one in self._all):
            log.warning("There are two plugins with the name %s: the first one counts", plugin.name)
            return
        self._all.append(plugin)
        for name in {each for full in (plugin.name, *others) for each in _names(full, plugin.kind)}:
            self._by_name.setdefault(name, []).append(plugin)


def loaded(plugin: Plugin) -> type[Configured]:
    """InvalidConfig, with what is missing."""
    try:
        return plugin.load()
    except ModuleNotFoundError as error:
        raise InvalidConfig(
            f"{plugin.name} needs the package {error.name}, which is not installed"
        ) from error
    except (ImportError, AttributeError) as error:
        raise InvalidConfig(f"{plugin.name} cannot be used: {error}") from error


def split_path(text: str | None) -> tuple[str, ...]:
    """`plugin.path`: folders with commas between them."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


@lru_cache(8)
def plugins_of(paths: tuple[str, ...] = (), excluded: tuple[str, ...] = ()) -> Plugins:
    """Made once in a process."""
    return Plugins(paths, excluded)


def plugins_of_worker(properties: Mapping[str, str]) -> Plugins:
    return plugins_of(split_path(properties.get("plugin.path")), split_path(properties.get(EXCLUDED)))


def load(name: str, *kinds: str, paths: tuple[str, ...] = ()) -> type[Configured]:
    return plugins_of(paths).load(name, *kinds)


def kinds_of(found: type) -> list[str]:
    """A converter may be one of headers, too."""
    return [kind for base, kind in _KINDS if issubclass(found, base)]


def _names(full: str, kind: str) -> Iterator[str]:
    yield full
    simple = full.replace(":", ".").rpartition(".")[2]
    yield simple
    suffix = _SUFFIXES[kind]
    if simple.endswith(suffix) and simple != suffix:
        yield simple.removesuffix(suffix)
    if "$" not in simple:
        yield simple.replace("$", ".")


def _from_table() -> Iterator[tuple[Plugin, Sequence[str]]]:
    for name, kind, where, *others in TABLE:
        made = Plugin(name, kind, penstock.__version__, partial(_imported, where))
        yield made, (where.replace(":", "."), *others)


def _imported(where: str) -> type[Configured]:
    module, _, name = where.partition(":")
    found: type[Configured] = getattr(importlib.import_module(module), name)
    return found


def _from_entry_points() -> Iterator[tuple[Plugin, Sequence[str]]]:
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            found = entry.load()
        except Exception as error:
            log.warning("The plugin %s (%s) cannot be loaded: %s", entry.name, entry.value, error)
            continue
        yield from _plugins_of(found, (entry.name,))


def _from_folder(folder: Path) -> Iterator[tuple[Plugin, Sequence[str]]]:
    if not folder.is_dir():
        log.warning("plugin.path: there is no folder %s", folder)
        return
    # Modules of a plugin may import one another.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    for file in sorted(folder.iterdir()):
        start = file / "__init__.py" if file.is_dir() else file
        if start.suffix != ".py" or not start.is_file() or file.name.startswith((".", "_")):
            continue
        try:
            module = _module(start, file.stem if file.is_file() else file.name)
        except Exception as error:
            log.warning("plugin.path: %s cannot be loaded: %s: %s", file, type(error).__name__, error)
            continue
        for name, found in inspect.getmembers(module, inspect.isclass):
            if not name.startswith("_") and found.__module__.split(".")[0] == module.__name__.split(".")[0]:
                yield from _plugins_of(found, ())


def _module(start: Path, name: str) -> ModuleType:
    """Under its own name where that is free, so that what is pickled is found again."""
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(start):
        return known
    if known is not None or importlib.util.find_spec(name) is None or not _is_at(name, start):
        name = f"penstock_plugin_{hashlib.sha256(str(start).encode()).hexdigest()[:12]}_{name}"
    folders = [str(start.parent)] if start.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, start, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_at(name: str, start: Path) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin == str(start)


def _plugins_of(found: object, others: Sequence[str]) -> Iterator[tuple[Plugin, Sequence[str]]]:
    if not inspect.isclass(found) or not issubclass(found, Configured) or inspect.isabstract(found):
        return
    if found.__module__ == "penstock.connect.interface":
        return
    name = f"{found.__module__}.{found.__qualname__}"
    for kind in kinds_of(found):
        yield Plugin(name, kind, found.version, partial(_same, found)), (*others, *found.java_names)


def _same(found: type[Configured]) -> type[Configured]:
    return found
