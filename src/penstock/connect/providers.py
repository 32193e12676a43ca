"""Values that stand elsewhere: `${file:/path:key}`, `${env:NAME}`, `${directory:/path:file}` in a configuration.

As in Kafka, a worker has those that `config.providers` names:

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/secrets

A configuration is kept and shown as it was written; what a reference stands for goes to the connector and its tasks only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from penstock.client.errors import BadOption, UserError
from penstock.connect.errors import InvalidConfig
from penstock.connect.settings import HIDDEN

PROVIDERS: Final = "config.providers"
REFERENCE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
SHORT_CHARS: Final = 6
_PACKAGE: Final = "org.apache.kafka.common.config.provider."


class Provider(Protocol):
    def value(self, path: str, key: str) -> str | None:
        """None where there is no such key. InvalidConfig."""


class Files:
    """A key of a file of properties."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = _allowed_paths(parameters)
        self.has_limits = bool(self._allowed)

    def value(self, path: str, key: str) -> str | None:
        from penstock.client.property_files import read_properties

        if not path or not _is_allowed(path, self._allowed):
            return None
        try:
            return read_properties(path).get(key)
        except UserError as error:
            raise InvalidConfig(f"Could not read properties from file {path}: {error}") from None


class Environment:
    """A variable of the environment."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._pattern = re.compile(parameters.get("allowlist.pattern") or ".*")

    def value(self, path: str, key: str) -> str | None:
        if path:
            raise InvalidConfig(f"Path is not supported for the environment, but a path was given: {path}")
        return os.environ.get(key) if self._pattern.fullmatch(key) else None


class Directories:
    """The whole text of a file in a folder, as Kubernetes mounts secrets."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = _allowed_paths(parameters)
        self.has_limits = bool(self._allowed)

    def value(self, path: str, key: str) -> str | None:
        if not path or not _is_allowed(path, self._allowed) or "/" in key or key in ("", ".", ".."):
            return None
        file = Path(path) / key
        try:
            return file.read_text() if file.is_file() else None
        except OSError as error:
            raise InvalidConfig(f"Could not read file {file}: {error.strerror}") from None


KINDS: Final[Mapping[str, Callable[[Mapping[str, str]], Provider]]] = {
    _PACKAGE + "FileConfigProvider": Files,
    _PACKAGE + "EnvVarConfigProvider": Environment,
    _PACKAGE + "DirectoryConfigProvider": Directories,
}


class Secrets:
    """What a configuration's references stand for, so that no message shows it."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        found = sorted(filter(None, texts), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_anywhere, found))) if found else None

    def hidden(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)


def _anywhere(text: str) -> str:
    """What is short is looked for as a word: letters stand everywhere."""
    pattern = re.escape(text)
    return pattern if len(text) >= SHORT_CHARS else rf"(?<!\w){pattern}(?!\w)"


class Providers:
    def __init__(self, by_name: Mapping[str, Provider]) -> None:
        self._by_name = dict(by_name)

    @classmethod
    def of(cls, worker: Mapping[str, str]) -> Providers:
        """Those that the worker's properties name. BadOption."""
        found: dict[str, Provider] = {}
        for name in filter(None, (part.strip() for part in worker.get(PROVIDERS, "").split(","))):
            kind = worker.get(f"{PROVIDERS}.{name}.class", "")
            make = KINDS.get(kind) or KINDS.get(_PACKAGE + kind)
            if make is None:
                raise BadOption(f"{PROVIDERS}.{name}.class: '{kind}' is none of {', '.join(KINDS)}")
            prefix = f"{PROVIDERS}.{name}.param."
            parameters = {
                key.removeprefix(prefix): text for key, text in worker.items() if key.startswith(prefix)
            }
            found[name] = make(parameters)
        return cls(found)

    def resolved(self, config: Mapping[str, str]) -> dict[str, str]:
        """A reference to a provider that the worker does not have, or to a key that is not there, stays as it is."""
        return {name: self.text(text) for name, text in config.items()}

    def text(self, text: str) -> str:
        if "${" not in text or not self._by_name:
            return text
        return REFERENCE.sub(self._replacement, text)

    def refers(self, text: str | None) -> bool:
        """Whether it stands for something that is not to be shown."""
        return text is not None and any(match[1] in self._by_name for match in REFERENCE.finditer(text))

    def secrets(self, config: Mapping[str, str | None]) -> Secrets:
        """InvalidConfig."""
        references = {match[0] for text in config.values() for match in REFERENCE.finditer(text or "")}
        return Secrets({self.text(each) for each in references} - references)

    def _replacement(self, match: re.Match[str]) -> str:
        provider = self._by_name.get(match[1])
        if provider is None:
            return match[0]
        found = provider.value(match[3] or "", match[4])
        return match[0] if found is None else found


def without_limits(worker: Mapping[str, str]) -> list[str]:
    """What somebody should know who lets others make connectors. BadOption."""
    return [
        f"{PROVIDERS}.{name}.param.allowed.paths is not set: who may make connectors may read any file of this user"
        for name, provider in Providers.of(worker)._by_name.items()
        if isinstance(provider, Files | Directories) and not provider.has_limits
    ]


def _allowed_paths(parameters: Mapping[str, str]) -> list[Path]:
    return [
        Path(path.strip()).resolve()
        for path in parameters.get("allowed.paths", "").split(",")
        if path.strip()
    ]


def _is_allowed(path: str, allowed: list[Path]) -> bool:
    found = Path(path).resolve()
    return not allowed or any(found.is_relative_to(each) for each in allowed)
