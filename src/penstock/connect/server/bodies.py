"""Bodies of requests. What is no JSON, or has another form, is answered with 500, as Kafka Connect does."""

from __future__ import annotations

import json
from typing import Any

import orjson

from penstock.connect.running.refusals import failed
from penstock.connect.state.configs import Target

_STATES = {"RUNNING": Target.STARTED, "PAUSED": Target.PAUSED, "STOPPED": Target.STOPPED}


def parsed(body: bytes) -> Any:
    if not body:
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise failed(f"The body is not JSON: {error}") from None


def config_of(value: Any) -> dict[str, str | None]:
    """Numbers and booleans become their texts."""
    if not isinstance(value, dict):
        raise failed("A configuration must be a JSON object with texts.")
    return {name: _text(name, one) for name, one in value.items()}


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise failed(f"The value of {name} must be a text, and not an object or a list.")


def creation_of(value: Any) -> tuple[str, dict[str, str | None], Target]:
    """Name, configuration, and how it begins."""
    if not isinstance(value, dict):
        raise failed("A connector must be given as a JSON object with name and config.")
    for name in value:
        if name not in ("name", "config", "initial_state"):
            raise failed(
                f'Unrecognized field "{name}": a connector is given by "name", "config" and "initial_state".'
            )
    state = value.get("initial_state")
    target = Target.STARTED if state is None else _STATES.get(str(state).upper())
    if target is None:
        raise failed(f'initial_state: "{state}" is not RUNNING, PAUSED or STOPPED.')
    if value.get("config") is None:
        raise failed("A connector must have a config.")
    config = config_of(value["config"])
    name = value.get("name") or config.get("name") or ""
    return str(name).strip(), config, target
