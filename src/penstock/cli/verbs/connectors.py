"""penstock connectors: list, create, status, logs, restart, pause, resume, stop, delete, offsets, validate, plugins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from penstock.cli.verbs.common_options import output_option, pairs, yes_option
from penstock.cli.verbs.connectors_asking import asked
from penstock.cli.verbs.connectors_creation import create, validate
from penstock.cli.verbs.connectors_logs import logs
from penstock.cli.verbs.connectors_offsets import offsets
from penstock.cli.verbs.output import Column, confirm, facts, say, show, show_rows
from penstock.client.connect_workers import ConnectWorkers, path_of


@click.group()
def connectors() -> None:
    """List, make, watch, restart and delete connectors, and say where they go on.

    \b
    Example:
      penstock connectors create orders --class FileStreamSource --set file=/tmp/orders --set topic=orders
      penstock connectors status orders
    """


connectors.add_command(create)
connectors.add_command(validate)
connectors.add_command(offsets)
connectors.add_command(logs)

LISTED: list[Column[dict[str, Any]]] = [
    Column("name", lambda one: one["name"]),
    Column("type", lambda one: one["type"]),
    Column("state", lambda one: one["state"]),
    Column("tasks", lambda one: one["tasks"], cell=lambda one: _counted(one["tasks"])),
    Column("class", lambda one: one["class"]),
]


@connectors.command("list")
@output_option
@asked
def list_connectors(workers: ConnectWorkers, output: str) -> None:
    """List the connectors, and how they are.

    \b
    Example:
      penstock connectors list
    """
    found = workers.get("/connectors?expand=status&expand=info")
    rows = [
        {
            "name": name,
            "type": (one.get("info") or {}).get("type"),
            "state": (one.get("status") or {}).get("connector", {}).get("state", "UNASSIGNED"),
            "tasks": [task["state"] for task in (one.get("status") or {}).get("tasks", [])],
            "class": (one.get("info") or {}).get("config", {}).get("connector.class"),
        }
        for name, one in sorted(found.items())
    ]
    show_rows(output, rows, LISTED, empty="there are no connectors: penstock connectors create")


@connectors.command()
@click.argument("names", nargs=-1, required=True, metavar="CONNECTOR...")
@output_option
@asked
def status(workers: ConnectWorkers, names: tuple[str, ...], output: str) -> int:
    """Show how connectors and their tasks are, with what went wrong.

    \b
    Example:
      penstock connectors status orders
    """
    found = [workers.get(path_of(name, "status")) for name in names]
    show(output, lambda: found, lambda: _draw_statuses(found))
    states = [
        state
        for one in found
        for state in (one["connector"]["state"], *(each["state"] for each in one["tasks"]))
    ]
    return 1 if "FAILED" in states else 0


def _draw_statuses(found: Iterable[dict[str, Any]]) -> None:
    for one in found:
        head = one["connector"]
        version = f", version {head['version']}" if head.get("version") else ""
        click.echo(f"{one['name']}: {head['state']} at {head['worker_id']} ({one['type']}{version})")
        _draw_trace(head)
        for task in one["tasks"]:
            click.echo(f"  task {task['id']}: {task['state']} at {task['worker_id']}")
            _draw_trace(task)


def _draw_trace(one: dict[str, Any]) -> None:
    for line in (one.get("trace") or "").rstrip().splitlines():
        click.echo(f"    {line}")


def _simple(command: str, method: str, path: str, done: str, help_text: str) -> None:
    """A command that tells a connector to do something."""

    @asked
    def run(workers: ConnectWorkers, names: tuple[str, ...]) -> None:
        for name in names:
            workers.ask(method, path_of(name, path))
            say(f"{name} {done}")

    run.__doc__ = help_text
    run.__name__ = command
    argument = click.argument("names", nargs=-1, required=True, metavar="CONNECTOR...")
    connectors.command(command)(argument(run))


_simple(
    "pause",
    "PUT",
    "pause",
    "is paused",
    """Let connectors rest; their tasks stay.

    \b
    Example:
      penstock connectors pause orders
    """,
)
_simple(
    "resume",
    "PUT",
    "resume",
    "goes on",
    """Let connectors go on.

    \b
    Example:
      penstock connectors resume orders
    """,
)
_simple("stop", "PUT", "stop", "is stopped", """Stop connectors; their tasks go.

    \b
    Example:
      penstock connectors stop orders
    """)  # fmt: skip


@connectors.command()
@click.argument("names", nargs=-1, required=True, metavar="CONNECTOR...")
@click.option("--task", type=click.IntRange(min=0), help="Only this task.")
@click.option("--only-failed", is_flag=True, help="Only what has failed, the connector or tasks.")
@asked
def restart(workers: ConnectWorkers, names: tuple[str, ...], task: int | None, only_failed: bool) -> None:
    """Start connectors again, with all their tasks.

    \b
    Example:
      penstock connectors restart orders --only-failed
    """
    for name in names:
        if task is not None:
            workers.ask("POST", path_of(name, "tasks", str(task), "restart"))
        else:
            only = "true" if only_failed else "false"
            workers.ask("POST", path_of(name, f"restart?includeTasks=true&onlyFailed={only}"))
        say(f"{name} is started again")


@connectors.command()
@click.argument("names", nargs=-1, required=True, metavar="CONNECTOR...")
@yes_option
@asked
def delete(workers: ConnectWorkers, names: tuple[str, ...], yes: bool) -> None:
    """Delete connectors. How far they were stays known: one that is made anew under the name goes on there.

    \b
    Example:
      penstock connectors delete orders
    """
    for name in names:
        workers.get(path_of(name))
        confirm(f"Delete the connector {name}?", yes=yes)
        workers.ask("DELETE", path_of(name))
        say(f"the connector {name} is deleted")


@connectors.command()
@click.argument("name", metavar="CONNECTOR")
@output_option
@asked
def config(workers: ConnectWorkers, name: str, output: str) -> None:
    """Show a connector's configuration.

    \b
    Example:
      penstock connectors config orders -o json
    """
    found = workers.get(path_of(name, "config"))
    show(output, lambda: found, lambda: facts(dict(sorted(found.items()))))


@connectors.command()
@click.argument("name", metavar="CONNECTOR")
@click.argument("words", nargs=-1, required=True, metavar="NAME=VALUE...")
@asked
def alter(workers: ConnectWorkers, name: str, words: tuple[str, ...]) -> None:
    """Change some of a connector's configuration; NAME= takes a setting away.

    \b
    Example:
      penstock connectors alter orders tasks.max=4 errors.tolerance=
    """
    changes = {key: value or None for key, value in pairs(words, what="the setting").items()}
    workers.ask("PATCH", path_of(name, "config"), changes)
    say(f"{name} is changed")


@connectors.command()
@click.option("--all", "is_all", is_flag=True, help="Also converters, transforms and predicates.")
@output_option
@asked
def plugins(workers: ConnectWorkers, is_all: bool, output: str) -> None:
    """List the classes that can be named.

    \b
    Example:
      penstock connectors plugins --all
    """
    found = workers.get(f"/connector-plugins?connectorsOnly={'false' if is_all else 'true'}")
    show_rows(output, found, [
        Column("class", lambda one: one["class"]),
        Column("type", lambda one: one["type"]),
        Column("version", lambda one: one.get("version")),
    ])  # fmt: skip


def _counted(states: list[str]) -> str:
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    return ", ".join(f"{count} {state}" for state, count in counts.items()) or "none"
