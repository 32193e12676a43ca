"""The JAAS file that Java's programs get by `KAFKA_OPTS=-Djava.security.auth.login.config=FILE`, as our own find it there.

A section may have a login module for each of several mechanisms. An option that holds the same, `….sasl.jaas.config`, comes
before the file.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from penstock.security.jaas import BadJaas, LoginModule, parse_file

VARIABLE: Final = "KAFKA_OPTS"
_PROPERTY: Final = "-Djava.security.auth.login.config="
_MODULES: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "GSSAPI": "Krb5LoginModule",
}


class JaasFile:
    """Read when something of it is wanted: ValueError, which begins with KAFKA_OPTS, where that cannot be. Nothing is in it
    where none is named."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.path = _path(environment.get(VARIABLE, ""))

    @cached_property
    def _sections(self) -> dict[str, list[LoginModule]]:
        if self.path is None:
            return {}
        try:
            with open(self.path, encoding="utf-8") as file:
                return parse_file(file.read())
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{self.where}: cannot read it: {error}") from None
        except BadJaas as error:
            raise ValueError(f"{self.where}: {error}") from None

    @property
    def where(self) -> str:
        """For messages about what stands in it."""
        return f"{VARIABLE}: {self.path}"

    def modules(self, *sections: str) -> list[LoginModule]:
        """Of the first of these sections that is there."""
        return next((self._sections[name] for name in sections if name in self._sections), [])

    def module(self, mechanism: str, *sections: str) -> LoginModule | None:
        """Of the mechanism, in the first of these sections that is there."""
        wanted = _MODULES.get(mechanism.upper())
        found = self.modules(*sections)
        return next((module for module in found if module.name.rpartition(".")[2] == wanted), None)


def _path(kafka_opts: str) -> str | None:
    try:
        words = shlex.split(kafka_opts)
    except ValueError:
        return None
    for word in reversed(words):  # of two, Java takes the last
        if word.startswith(_PROPERTY):
            # With another "=" in front it counts instead of Java's own settings, of which there are none here.
            path = word[len(_PROPERTY) :].removeprefix("=").removeprefix("file:")
            return "/" + path.lstrip("/") if path.startswith("//") else path
    return None
