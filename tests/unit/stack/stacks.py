"""Stacks for unit tests: wishes in the words of the command line, written where a test wants them."""

import os
from pathlib import Path

from penstock.stack import zookeeper
from penstock.stack.brokers import NAME as BROKER
from penstock.stack.composition import ServiceWish, Wish, compose
from penstock.stack.services import SERVICES
from penstock.stack.stack import Stack
from penstock.stack.stack_file import read_stack, write_stack


def asked(
    *,
    brokers: int | None = None,
    port: int | None = None,
    zookeepers: int | None = None,
    zookeeper_port: int | None = None,
    host: str | None = None,
    settings: tuple[str, ...] | None = None,
) -> Wish:
    return Wish(
        {
            BROKER: ServiceWish(brokers, port, settings),
            zookeeper.NAME: ServiceWish(zookeepers, zookeeper_port),
        },
        host,
    )


def made(directory: Path, wish: Wish) -> Stack:
    directory.mkdir(exist_ok=True)
    stack = compose(directory, read_stack(directory), wish, SERVICES)
    write_stack(stack)
    return stack


def processes_of(folder: Path) -> list[str]:
    """Ids of processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(folder) in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found
