"""penstock connectors create and validate: a configuration is asked for, and checked before it is sent."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import quote

import click

from penstock.cli.connect_start import read_connector
from penstock.cli.verbs.common_options import output_option, pairs
from penstock.cli.verbs.connectors_asking import asked
from penstock.cli.verbs.output import say, show
from penstock.client.connect_workers import ConnectWorkers
from penstock.client.errors import UserError

ATTEMPTS = 20


@click.command()
@click.argument("name", required=False, metavar="[CONNECTOR]")
@click.option("-f", "--file", metavar="FILE", help="Its configuration: properties or JSON.")
@click.option("--class", "kind", metavar="CLASS", help="The class of the connector.")
@click.option(
    "--set", "words", metavar="NAME=VALUE", multiple=True, help="A setting; may be given several times."
)
@click.option("--state", type=click.Choice(["running", "paused", "stopped"]), default="running", show_default=True,
              help="How it begins.")  # fmt: skip
@click.option("--ask/--no-ask", default=None, help="Ask for what is missing.  [default: at a terminal]")
@output_option
@asked
def create(
    workers: ConnectWorkers,
    name: str | None,
    file: str | None,
    kind: str | None,
    words: tuple[str, ...],
    state: str,
    ask: bool | None,
    output: str,
) -> None:
    """Make a connector. What is missing is asked for, with what it means.

    \b
    Example:
      penstock connectors create orders --class FileStreamSource --set file=/tmp/orders --set topic=orders
      penstock connectors create -f orders.json
    """
    config: dict[str, str] = {}
    if file:
        named, config = read_connector(file)
        name = name or named
    if kind:
        config["connector.class"] = kind
    config |= pairs(words, what="the setting")
    asks = sys.stdin.isatty() if ask is None else ask
    if asks:
        name, config = _completed(workers, name, config)
    if not name:
        raise UserError("the connector needs a name: penstock connectors create NAME")
    config["name"] = name
    body = {"name": name, "config": config, "initial_state": state.upper()}
    made = workers.ask("POST", "/connectors", body)
    show(
        output, lambda: made, lambda: say(f"the connector {name} is made: penstock connectors status {name}")
    )


def _completed(
    workers: ConnectWorkers, name: str | None, config: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """With answers for all that is missing or wrong."""
    if not name:
        name = str(click.prompt("Name of the connector"))
    if "connector.class" not in config:
        for one in workers.get("/connector-plugins"):
            click.echo(f"  {one['type']:6} {one['class']}", err=True)
        config["connector.class"] = str(click.prompt("Class of the connector"))
    for _ in range(ATTEMPTS):
        wrong = [one for one in _checked(workers, {**config, "name": name}) if one["value"]["errors"]]
        if not wrong:
            break
        for one in wrong:
            _ask_for(one, config)
    return name, config


def _ask_for(one: dict[str, Any], config: dict[str, str]) -> None:
    definition, value = one["definition"], one["value"]
    setting = value["name"]
    click.echo(f"\n{setting} ({definition['type'].lower()}): {definition['documentation']}", err=True)
    for error in value["errors"]:
        if not error.startswith("Missing required"):
            click.echo(f"  {error}", err=True)
    if value["recommended_values"]:
        click.echo(f"  One of: {', '.join(map(str, value['recommended_values'][:20]))}", err=True)
    is_secret = definition["type"] == "PASSWORD"
    answer = str(click.prompt(setting, default=definition["default_value"] or "", hide_input=is_secret,
                              show_default=bool(definition["default_value"])))  # fmt: skip
    if answer:
        config[setting] = answer
    else:
        config.pop(setting, None)


def _checked(workers: ConnectWorkers, config: dict[str, str]) -> list[dict[str, Any]]:
    kind = config.get("connector.class", "")
    found = workers.ask(
        "PUT", f"/connector-plugins/{quote(kind.rpartition('.')[2], safe='')}/config/validate", config
    )
    configs: list[dict[str, Any]] = found["configs"]
    return configs


@click.command()
@click.argument("file", metavar="FILE")
@output_option
@asked
def validate(workers: ConnectWorkers, file: str, output: str) -> int:
    """Check a connector's configuration before it is sent.

    \b
    Example:
      penstock connectors validate orders.json
    """
    _, config = read_connector(file)
    found = _checked(workers, config)
    known = {one["value"]["name"] for one in found}
    problems = [(one["value"]["name"], error) for one in found for error in one["value"]["errors"]]
    hints = _unknown(config, known)
    document = {
        "errors": [{"name": name, "error": error} for name, error in problems],
        "unknown": [{"name": name, "did_you_mean": near} for name, near in hints.items()],
    }
    show(output, lambda: document, lambda: _draw_problems(file, problems, hints))
    return 1 if problems else 0


_OPEN = ("transforms.", "predicates.", "producer.override.", "consumer.override.", "admin.override.", "topic.creation.",
         "key.converter.", "value.converter.", "header.converter.", "errors.restart.")  # fmt: skip


def _unknown(config: dict[str, str], known: set[str]) -> dict[str, str | None]:
    from difflib import get_close_matches

    return {
        name: next(iter(get_close_matches(name, known, n=1)), None)
        for name in config
        if name not in known and not name.startswith(_OPEN)
    }


def _draw_problems(file: str, problems: list[tuple[str, str]], hints: dict[str, str | None]) -> None:
    for name, error in problems:
        click.echo(f"{name}: {error}")
    for name, near in hints.items():
        click.echo(f"{name}: the connector does not know it" + (f" (did you mean {near}?)" if near else ""))
    if not problems:
        say(f"{file} can be used")
