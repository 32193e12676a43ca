"""What the broker takes from the machine without asking a port, replaced for the time of one simulation.

Identifiers (`os.urandom`, `random`), the length of a connection's turn, the threads that sync logs at a clean stop, and the
order of sets whose members hash by their place in memory.
"""

import logging
import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, Final

from penstock.broker.partitions import held_partitions as partitions
from penstock.broker.partitions.partition import Partition
from penstock.broker.replication.roles import Roles
from penstock.net import connection
from penstock.storage.chores import Flush
from penstock.wire.apis import APIS
from simulation.seeds.history import Place
from simulation.seeds.loop import Schedule

MAX_KEPT_LINES: Final = 2_000
WITH_SETS_OF_OBJECTS: Final = (
    "broker.partitions.waits",
    "broker.requests.dispatch",
    "broker.upkeep.maintenance",
    "net.listener",
)


class OrderedSet(dict[Any, None]):
    """As far as a set of waits, tasks or connections is used; iterates in the order of arrival."""

    def add(self, member: Any) -> None:
        self[member] = None

    def discard(self, member: Any) -> None:
        self.pop(member, None)

    remove = dict.__delitem__


class Lines(logging.Handler):
    """The brokers' log lines with the virtual time; those with a traceback are mistakes of the program."""

    def __init__(self, schedule: Schedule, *, verbose: bool) -> None:
        super().__init__(logging.INFO if verbose else logging.ERROR)
        self._schedule = schedule
        self._verbose = verbose
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{self._schedule.now:.6f} {record.levelname} {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            self._schedule.mistakes.append(f"{record.getMessage()}: {error!r}{_where(error)}")
        if self._verbose:
            print(line, flush=True)
        elif len(self.lines) < MAX_KEPT_LINES:
            self.lines.append(line)


def load_handlers() -> None:
    """What an import asks of the machine must not be part of the first run."""
    for api in APIS.values():
        import_module(f"penstock.broker.handlers.{api.name}")


@contextmanager
def sealed(
    schedule: Schedule, *, on_lead: Callable[[Place, bytes, int, int], None], verbose: bool = False
) -> Iterator[Lines]:
    """A world whose only source of chance and time is the schedule. `on_lead` hears of every broker that begins to lead a
    partition: partition, topic id, epoch, broker.
    """
    load_handlers()
    source = random.Random(schedule.seed)
    take_role = Roles._give_role

    def give_role(roles: Roles, partition: Partition, topic_id: bytes, placed: Any) -> None:
        if placed.leader == roles._node.broker_id:
            on_lead((partition.topic, partition.index), topic_id, placed.leader_epoch, placed.leader)
        take_role(roles, partition, topic_id, placed)

    with ExitStack() as stack:
        enter = stack.enter_context
        for name in WITH_SETS_OF_OBJECTS:  # a module's own name is found before the built-in one
            enter(_replaced(import_module(f"penstock.{name}"), "set", OrderedSet))
        enter(_replaced(Roles, "_give_role", give_role))
        enter(_replaced(os, "urandom", source.randbytes))
        enter(_replaced(connection, "monotonic", lambda: schedule.now))
        enter(_replaced(partitions, "_run_all", _one_by_one))
        lines = Lines(schedule, verbose=verbose)
        enter(_logging_to(lines, logging.INFO if verbose else logging.ERROR))
        state = random.getstate()
        stack.callback(lambda: random.setstate(state))
        random.seed(schedule.seed)
        yield lines


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    had = name in vars(owner)
    before = getattr(owner, name, None)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if had:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


@contextmanager
def _logging_to(handler: logging.Handler, level: int) -> Iterator[None]:
    logger = logging.getLogger("penstock")
    before = logger.handlers[:], logger.level, logger.propagate
    logger.handlers[:], logger.propagate = [handler], False
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.handlers[:], logger.propagate = before[0], before[2]
        logger.setLevel(before[1])


def _one_by_one(flushes: Iterable[Flush]) -> None:
    for flush in flushes:
        flush.run()


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"
