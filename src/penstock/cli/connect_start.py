"""A worker of Connect is started from files: by `penstock connect` and by Kafka's connect-standalone and connect-distributed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.cli.http_services import extra, run
from penstock.client.errors import UserError
from penstock.client.property_files import read_properties, read_text


def start(
    worker: str,
    connectors: Sequence[str] = (),
    *,
    is_standalone: bool,
    pairs: Mapping[str, str] | None = None,
    bootstrap: str | None = None,
    is_said: bool = False,
    host: str | None = None,
    port: int | None = None,
) -> int:
    """`pairs` win over the file, and so does `bootstrap` where `is_said`; a variable of the environment does not."""
    with extra("connect"):
        from penstock.connect.running.options import PORT, worker_options
        from penstock.connect.server.service import connect_service
    properties = read_properties(worker) | dict(pairs or {})
    if bootstrap and (is_said or "bootstrap.servers" not in properties):
        properties["bootstrap.servers"] = bootstrap
    if host is not None or port is not None:
        address = f"[{host}]" if host and ":" in host else host or "0.0.0.0"
        scheme = "https" if properties.get("listeners", "").strip().startswith("https:") else "http"
        properties["listeners"] = f"{scheme}://{address}:{PORT if port is None else port}"
    options = worker_options(properties, is_standalone=is_standalone)
    named = [read_connector(path) for path in connectors]
    return run(lambda: connect_service(options, connectors=named), options.web, warnings=options.warnings)


def read_connector(path: str) -> tuple[str, dict[str, str]]:
    """The name and the configuration of a file: properties, a JSON object of them, or one with `name` and `config`. UserError."""
    if Path(path).suffix != ".json":
        config = read_properties(path)
        name = config.get("name", "")
    else:
        try:
            found = json.loads(read_text(path))
        except ValueError as error:
            raise UserError(f"cannot read {path}: it is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise UserError(f"cannot read {path}: it must have an object")
        inner = found.get("config")
        config = {str(key): _text(one) for key, one in (inner if isinstance(inner, dict) else found).items()}
        name = str(found.get("name") or config.get("name", ""))
    if not name:
        raise UserError(f"{path}: the connector has no name")
    return name, {**config, "name": name}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
