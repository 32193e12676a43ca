"""Connectors: made, or given the configuration that they shall have."""

from __future__ import annotations

import http.client
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.client.connect_workers import ConnectWorkers, path_of
from penstock.client.errors import Refused
from penstock.stack.contents.outcome import Outcome
from penstock.stack.description.model import ConnectorWish

PATIENCE_S = 60.0
PAUSE_S = 0.3
BUSY = (http.client.CONFLICT, http.client.SERVICE_UNAVAILABLE)
"""While workers find their leader."""


def apply_connectors(
    workers: ConnectWorkers,
    connectors: Sequence[ConnectorWish],
    file: Path,
    outcome: Outcome,
    *,
    check: bool = False,
) -> None:
    """Unreachable."""
    for wish in connectors:
        try:
            _apply(workers, wish, file, outcome, check=check)
        except Refused as error:
            outcome.say_failed(f"{file}:{wish.line}: connector {wish.name}: {error}")


def _apply(
    workers: ConnectWorkers, wish: ConnectorWish, file: Path, outcome: Outcome, *, check: bool
) -> None:
    there = connector_config(workers, wish.name)
    if there == dict(wish.config):
        outcome.as_wished += 1
        return
    if check:
        outcome.say_done(f"connector {wish.name} would be {'made' if there is None else 'changed'}")
        return
    patiently(workers, "PUT", path_of(wish.name, "config"), dict(wish.config))
    if there is None:
        outcome.say_done(f"connector {wish.name} was made")
    else:
        names = sorted(name for name in {*there, *wish.config} if there.get(name) != wish.config.get(name))
        outcome.say_done(f"connector {wish.name} was changed ({', '.join(names)})")


def connector_config(workers: ConnectWorkers, name: str) -> dict[str, str] | None:
    """None: there is none."""
    try:
        found = patiently(workers, "GET", path_of(name, "config"))
    except Refused as error:
        if error.code == http.client.NOT_FOUND:
            return None
        raise
    return {str(key): str(value) for key, value in found.items()}


def patiently(workers: ConnectWorkers, method: str, path: str, body: Any = None) -> Any:
    """Asked again while the workers find their leader, which they do at their start."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return workers.ask(method, path, body)
        except Refused as error:
            if error.code not in BUSY or time.monotonic() > deadline_s:
                raise
        time.sleep(PAUSE_S)
