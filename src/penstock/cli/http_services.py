"""What commands share that start an HTTP service."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.client.errors import UserError
from penstock.runtime.logs import FORMAT_VARIABLE, FORMATS, configure, format_of

if TYPE_CHECKING:
    from penstock.web.options import WebOptions
    from penstock.web.service import WebService


F = TypeVar("F", bound=Callable[..., Any])


def log_format(command: F) -> F:
    """Adds --log-format. The environment takes the word on, so that whatever the command starts has it, too."""

    def chosen(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            os.environ[FORMAT_VARIABLE] = value

    option = click.option(
        "--log-format", type=click.Choice(FORMATS), expose_value=False, callback=chosen,
        help="How log lines look (stderr): text, or JSON for machines. Default: text, or what "
        f"{FORMAT_VARIABLE} says.",
    )  # fmt: skip
    return option(command)


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


def configure_logs() -> None:
    configure(format_of(os.environ), "INFO")


def tell_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        if format_of(os.environ) == "json":
            logging.getLogger("penstock").warning("%s", warning)
        else:
            print(f"WARN: {warning}", file=sys.stderr, flush=True)


def run(service: Callable[[], WebService], options: WebOptions, *, warnings: Iterable[str]) -> int:
    """Until it is stopped; `service` is made after the warnings are told."""
    from penstock.web.serving import serve

    configure_logs()
    tell_warnings(warnings)
    return serve(service(), options, tell=click.echo)
