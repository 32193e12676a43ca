"""A function of one's own as a transform:

    transforms.mine.type=python
    transforms.mine.class=my.module:change        or a file: /opt/changes.py:change

    def change(record):                           the same record, `record.replaced(value=…)`, or None to leave it out
        return record if record.value["total"] > 0 else None

What is not a setting of ours is in the configuration that the function gets, if it takes one more, `config`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from penstock.connect.errors import ConnectError, DataError, InvalidConfig
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import HIGH, Kind, Setting, Settings
from penstock.connect.transforms.checks import refused

_SETTING = "class"


class PythonTransform(Transformation):
    settings = Settings(
        Setting(
            _SETTING,
            Kind.STRING,
            "The function, as module:function or file.py:function. It gets a record and returns one, or None to leave it out.",
            importance=HIGH,
        )
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        function = load_function(self.values[_SETTING])
        if _takes_config(function):
            function = partial(function, config=dict(given))
        self._function = function

    def apply(self, record: ConnectRecord) -> Any:
        try:
            made = self._function(record)
        except ConnectError:
            raise
        except Exception as error:
            raise DataError(f"{self.values[_SETTING]} failed: {type(error).__name__}: {error}") from error
        if made is not None and not isinstance(made, ConnectRecord):
            raise DataError(
                f"{self.values[_SETTING]} returned a {type(made).__name__}: it must return a record, or None to leave it out"
            )
        return made


def load_function(place: str) -> Callable[..., Any]:
    """InvalidConfig, with what is wrong."""
    module_name, colon, name = place.rpartition(":")
    if not colon or not module_name or not name.isidentifier():
        raise refused(_SETTING, place, "It must be module:function or file.py:function")
    try:
        module = (
            _from_file(module_name) if module_name.endswith(".py") else importlib.import_module(module_name)
        )
    except InvalidConfig:
        raise
    except Exception as error:  # what a module does when it is loaded is its own affair
        raise refused(
            _SETTING, place, f"{module_name} could not be loaded: {type(error).__name__}: {error}"
        ) from error
    function = getattr(module, name, None)
    if function is None:
        raise refused(_SETTING, place, f"{module_name} has no {name}")
    if not callable(function):
        raise refused(_SETTING, place, f"{name} is not a function")
    if inspect.iscoroutinefunction(function):
        raise refused(_SETTING, place, f"{name} is async: a transform is a plain function")
    found: Callable[..., Any] = function
    return found


def _from_file(path: str) -> Any:
    """A file is loaded once, as a module of its own."""
    whole = Path(path).resolve()
    name = f"penstock_transform_{whole.stem}_{abs(hash(str(whole))):x}"
    if name in sys.modules:
        return sys.modules[name]
    if not whole.is_file():
        raise InvalidConfig(f"Invalid value {path} for configuration {_SETTING}: There is no such file")
    spec = importlib.util.spec_from_file_location(name, whole)
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


def _takes_config(function: Callable[..., Any]) -> bool:
    try:
        return "config" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
