"""penstock compose: a stack's file as one for containers."""

from __future__ import annotations

import os
from pathlib import Path

import click

from penstock.cli.verbs.stack_place import FILE_NAME
from penstock.client.errors import UserError, reason


@click.command()
@click.option(
    "--file",
    "-f",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=FILE_NAME,
    show_default=True,
    metavar="FILE",
    help="The stack's file.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where to write it; - is stdout.  [default: compose.yaml beside FILE]",
)
@click.option("--image", default="penstock", show_default=True, help="The image of brokers.")
@click.option(
    "--services-image", default="penstock-services", show_default=True, help="The image of the services."
)
def compose(file: Path, output: Path | None, image: str, services_image: str) -> None:
    """Write the stack of FILE as a compose.yaml: its services with ports, volumes and health checks.

    The images are made of deploy/Dockerfile and deploy/Dockerfile.services. Topics, schemas, SQL and connectors are made by a
    container that ends then. A compose.yaml that this command has not written is left alone.

    \b
    Example:
      penstock compose --file penstock.yaml -o compose.yaml
      docker compose up -d
    """
    from penstock.cli.verbs.output import say
    from penstock.stack.containers import MARK, compose_file
    from penstock.stack.description.reading import read_description
    from penstock.stack.services import SERVICES

    target = file.parent / "compose.yaml" if output is None else output
    description = read_description(file, SERVICES)
    folder = Path() if str(target) == "-" else target.parent
    beside = os.path.relpath(file.parent.resolve(), folder.resolve())
    text = compose_file(
        description,
        SERVICES,
        beside=beside if beside.startswith(".") else f"./{beside}",
        image=image,
        services_image=services_image,
    )
    if str(target) == "-":
        click.echo(text, nl=False)
        return
    try:
        if target.exists() and not target.read_text().startswith(MARK):
            raise UserError(f"{target} is there, and not of this command: name another file with -o")
        target.write_text(text)
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is no text"
        raise UserError(f"cannot write {target}: {why}") from None
    say(f"{target} is written: docker compose -f {target} up -d starts it")
