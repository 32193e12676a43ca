"""What the commands about connectors share: where the worker is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from penstock.cli.verbs.common_options import like
from penstock.client.connect_workers import DEFAULT_URL, ConnectWorkers

F = TypeVar("F", bound=Callable[..., Any])


def asked(command: F) -> F:
    """Adds --url and --ca; the command gets one `workers` argument for both."""

    def with_workers(*args: Any, url: str, ca: str | None, **options: Any) -> Any:
        return command(*args, workers=ConnectWorkers(url, authority=ca), **options)

    decorated = click.option(
        "--ca", metavar="FILE", help="The authority of an https worker's certificate, as PEM."
    )(like(with_workers, command))
    return click.option(  # type: ignore[return-value]
        "-u", "--url", metavar="URL", envvar="PENSTOCK_CONNECT", default=DEFAULT_URL, show_default=True,
        show_envvar=True, help="Where a worker of Connect is: http://[NAME:PASSWORD@]HOST:PORT.",
    )(decorated)  # fmt: skip
