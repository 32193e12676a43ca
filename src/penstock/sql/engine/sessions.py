"""What comes along with a request beside its statements: properties, and variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.sql.engine.options import PROHIBITED, STATEMENT_PROPERTIES, STREAMS
from penstock.sql.engine.refusals import BAD_REQUEST, SqlRefused


@dataclass
class Session:
    """Of one request: the statements' properties and variables, which SET and DEFINE change for those behind."""

    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


def session(properties: Mapping[str, Any], variables: Mapping[str, Any]) -> Session:
    """SqlRefused for a property that nobody may set."""
    texts = {name: _text(value) for name, value in properties.items()}
    for name in texts:
        check_property(name)
    return Session(texts, {name: _text(value) for name, value in variables.items()})


def check_property(name: str) -> None:
    bare = name.removeprefix(STREAMS)
    if name in PROHIBITED or bare in PROHIBITED:
        raise SqlRefused(
            "One or more properties overrides set locally are prohibited by the KSQL server "
            f"(use UNSET to reset their default value): [{name}]",
            code=BAD_REQUEST,
        )
    if bare not in STATEMENT_PROPERTIES and not bare.startswith(
        ("ksql.", "consumer.", "producer.", "topic.")
    ):
        raise SqlRefused(f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'",
        code=BAD_REQUEST)  # fmt: skip


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
