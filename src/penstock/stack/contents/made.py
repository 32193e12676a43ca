"""What descriptions of a stack had so far, in `contents.json`: only that is told when it is in the file no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from penstock.client.errors import UserError, reason
from penstock.stack.description.model import Contents
from penstock.stack.secret_file import write_secret

FILE_NAME = "contents.json"


class Made(NamedTuple):
    topics: frozenset[str] = frozenset()
    schemas: frozenset[str] = frozenset()
    connectors: frozenset[str] = frozenset()

    def union(self, contents: Contents) -> Made:
        return Made(
            self.topics | {one.name for one in contents.topics},
            self.schemas | {one.subject for one in contents.schemas},
            self.connectors | {one.name for one in contents.connectors},
        )


def read_made(directory: Path) -> Made:
    """A file that cannot be read counts as none: then less is told, and nothing else."""
    try:
        stored = json.loads((directory / FILE_NAME).read_text())
        return Made(*(frozenset(map(str, stored.get(name, ()))) for name in Made._fields))
    except (OSError, ValueError, AttributeError, TypeError):
        return Made()


def write_made(directory: Path, made: Made) -> None:
    path = directory / FILE_NAME
    try:
        write_secret(
            path, json.dumps({name: sorted(names) for name, names in made._asdict().items()}, indent=2) + "\n"
        )
    except OSError as error:
        raise UserError(f"cannot write {path}: {reason(error)}") from None
