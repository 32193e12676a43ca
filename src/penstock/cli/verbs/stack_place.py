"""Which stack a command is about: --data, or a `penstock.yaml`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from penstock.client.errors import UserError
from penstock.stack.stack import DEFAULT_DATA

FILE_NAME = "penstock.yaml"

F = TypeVar("F", bound=Callable[..., Any])

file_option = click.option(
    "--file",
    "-f",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"The file that describes the stack ({FILE_NAME} in this folder, where nothing else is said).",
)


def data_option(help: str = "Where the cluster is kept.") -> Callable[[F], F]:
    return click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help=f"{help}  [default: {DEFAULT_DATA}, or what the file says]",
    )


def located(command: F) -> F:
    """Adds --data and --file; the command gets one `data` argument for both."""
    from penstock.cli.verbs.common_options import like

    def with_data(*args: Any, data: Path | None, file: Path | None, **options: Any) -> Any:
        return command(*args, data=place(data, file), **options)

    without_short = click.option(
        "--file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"The file that says where ({FILE_NAME} in this folder, where there is one).",
    )
    return without_short(data_option()(like(with_data, command)))  # type: ignore[return-value]


def place(data: Path | None, file: Path | None) -> Path:
    """The stack's directory. UserError for a file that cannot be read."""
    if data is not None:
        return data
    if file is None:
        file = here()
    if file is None:
        return Path(DEFAULT_DATA)
    from penstock.stack.description.reading import said_data

    return said_data(file)


def here() -> Path | None:
    """The file in the current folder."""
    path = Path(FILE_NAME)
    return path if path.is_file() else None


def words(data: Path) -> str:
    """What other commands must be told to find the same stack."""
    context = click.get_current_context()
    file = context.params.get("file")
    if file is not None and context.params.get("data") is None:
        return f" --file {file}"
    if data == Path(DEFAULT_DATA) or (context.params.get("data") is None and here() is not None):
        return ""
    return f" --data {data}"


def said(*names: str) -> list[str]:
    """Those of these parameters that the command line itself says."""
    context = click.get_current_context()
    return [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def option_of(name: str) -> str:
    """As it is written on the command line."""
    for parameter in click.get_current_context().command.params:
        if parameter.name == name:
            return parameter.opts[0]
    raise UserError(name)
