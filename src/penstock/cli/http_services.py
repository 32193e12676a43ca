"""What commands share that start an HTTP service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from penstock.client.errors import UserError
from penstock.runtime.logs import configure

if TYPE_CHECKING:
    from penstock.web.options import WebOptions
    from penstock.web.service import WebService


@contextmanager
def extra(name: str, *, command: str = "") -> Iterator[None]:
    """For the imports of a service: says what to install where a package of its extra is missing. Its command has the same
    name where no other is given."""
    try:
        import penstock.web.serving  # noqa: F401 -- which serves all of them

        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("penstock"):
            raise
        raise UserError(
            f"penstock {command or name} needs more packages: pip install 'penstock[{name}]'"
        ) from None


def run(service: Callable[[], WebService], options: WebOptions, *, warnings: Iterable[str]) -> int:
    """Until it is stopped; `service` is made after the warnings are told."""
    from penstock.web.serving import serve

    configure("text", "INFO")
    for warning in warnings:
        print(f"WARN: {warning}", file=sys.stderr, flush=True)
    return serve(service(), options, tell=click.echo)
