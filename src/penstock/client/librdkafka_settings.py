"""Settings that a program gives for librdkafka's clients, in its own names or in those of the Java clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.client.errors import BadOption
from penstock.client.properties import SECURITY_NAMES, check, to_librdkafka, unknown

_JAVAS: Final = ("sasl.jaas.config", "ssl.truststore.", "ssl.keystore.")
"""What of security librdkafka cannot read, or reads in part. With other names it is told what was given, word for word."""


def librdkafka_settings(given: Mapping[str, Any], *, role: str) -> dict[str, Any]:
    """`role` is "admin", "producer" or "consumer". Functions among the values (`error_cb`) are kept as they are.

    BadOption, which begins with the name, for one that nobody has, and for values that cannot be or contradict each other.
    """
    texts = {name: _text(value) for name, value in given.items() if isinstance(value, str | int | float)}
    for name, near in unknown(texts).items():
        raise BadOption(f"{name}: there is no such property{f'; did you mean {near}?' if near else ''}")
    check(texts)
    security = {name: value for name, value in texts.items() if name in SECURITY_NAMES}
    settings: dict[str, Any] = {name: value for name, value in given.items() if name not in texts}
    settings |= to_librdkafka(texts, role=role)
    if not any(name.startswith(_JAVAS) for name in security):
        return settings | security
    from penstock.client.security import security_of

    return settings | security_of(security).librdkafka_settings()


def _text(value: str | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
