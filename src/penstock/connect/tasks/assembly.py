"""A task with its converters and transforms, made as the configuration says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.connect.errors import InvalidConfig
from penstock.connect.interface import Converter, HeaderConverter
from penstock.connect.tasks.settings import with_prefix

Load = Callable[..., type[Any]]
"""The name in a configuration, and the kinds of plugins that it may be → its class. InvalidConfig."""

CONNECTOR_CLASS: Final = "connector.class"
SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def loader(worker: Mapping[str, str]) -> Load:
    """Of the plugins that this worker has."""
    from penstock.connect.plugins import plugins_of_worker

    return plugins_of_worker(worker).load


class Assembly:
    """`config` is the connector's and the task's."""

    def __init__(self, task: Any, config: Mapping[str, str], worker: Mapping[str, str], load: Load) -> None:
        """InvalidConfig for what cannot be found or used."""
        self.task, self.config = task, config
        self._worker, self._load = worker, load
        self.key: Converter = self._converter("key")
        self.value: Converter = self._converter("value")
        self.header: HeaderConverter = self._converter("header")
        self.chain = self._make_chain()
        self.apply: Callable[[Any], Any] | None = None if self.chain is None else self.chain.apply

    def close(self) -> None:
        if self.chain is not None:
            self.chain.close()

    def _converter(self, role: str) -> Any:
        """The connector's own, or the worker's; each with what is said under the same name beside it."""
        name = f"{role}.converter"
        given = self.config if self.config.get(name) else self._worker
        kind = "header_converter" if role == "header" else "converter"
        class_name = given.get(name) or (SIMPLE_HEADERS if role == "header" else "")
        if not class_name:
            raise InvalidConfig(f'Missing required configuration "{name}" which has no default value.')
        converter = self._load(class_name, kind)()
        converter.is_key = role == "key"
        converter.configure({"converter.type": role, **with_prefix(given, f"{name}.")})
        return converter

    def _make_chain(self) -> Any:
        if not self.config.get("transforms", "").strip():
            return None
        from penstock.connect.transforms.chain import Chain

        return Chain.from_config(self.config, lambda name: self._load(name, "transformation", "predicate"))
