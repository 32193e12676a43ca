"""The JSON Schema of `penstock.yaml`, for editors: made of the table that checks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.stack.description.table import root
from penstock.stack.stack import Service


def json_schema(services: Sequence[Service]) -> dict[str, Any]:
    """Draft 7, which editors know."""
    found = root(services).schema()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "penstock.yaml",
        "description": "A stack that `penstock up --file` starts.",
        **found,
        "type": "object",
    }
