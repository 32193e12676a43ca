"""One seed: a scenario and its lies, with a deadline."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final

from simulation.liar.act import Act, Over, Report
from simulation.liar.broker import LyingBroker
from simulation.liar.lies import Plan
from simulation.liar.scenarios.processing import process
from simulation.liar.scenarios.reading import read_tables, read_while_records_go
from simulation.liar.scenarios.replaying import replay_dead_letters
from simulation.liar.scenarios.streaming import read_stream
from simulation.liar.scenarios.writing import write_at_least_once, write_exactly_once
from simulation.liar.world import World

DEADLINE_S: Final = 60.0
GRACE_S: Final = 30.0
"""For a scenario that sees the deadline to tell so itself."""
SCENARIOS: Final[dict[str, Callable[[Act], None]]] = {
    "read-tables": read_tables,
    "read-while-records-go": read_while_records_go,
    "read-stream": read_stream,
    "write-exactly-once": write_exactly_once,
    "write-at-least-once": write_at_least_once,
    "process": process,
    "replay-dead-letters": replay_dead_letters,
}
_NAMES: Final = (
    "read-tables", "read-tables", "read-while-records-go", "read-stream", "read-stream",
    "write-exactly-once", "write-exactly-once", "write-at-least-once", "process", "process", "process",
    "replay-dead-letters",
)  # fmt: skip


def perform(
    seed: int,
    world: World,
    *,
    scenario: str | None = None,
    only: frozenset[str] | None = None,
    deadline_s: float = DEADLINE_S,
) -> Report:
    """`scenario` and `only` (kinds of lies) instead of what the seed would choose."""
    plan = Plan.drawn(seed, only=only)
    began_s = time.monotonic()
    name = scenario or _NAMES[seed % len(_NAMES)]
    with LyingBroker(world.broker.port) as liar:
        act = Act(world, liar, plan, began_s + deadline_s)
        thread = threading.Thread(target=_run, args=(SCENARIOS[name], act), name=f"seed-{seed}", daemon=True)
        thread.start()
        thread.join(deadline_s + GRACE_S)
        if thread.is_alive():
            act.wrong(f"hangs:\n{_stack(thread)}")
        return Report(
            seed,
            name,
            act.violations,
            liar.told,
            act.errors,
            time.monotonic() - began_s,
            [*liar.trace, *act.notes],
        )


def _run(scenario: Callable[[Act], None], act: Act) -> None:
    try:
        scenario(act)
    except Over as error:
        if not act.violations:
            act.wrong(f"does not succeed in time: {error.__cause__}")
    except Exception as error:
        last = "".join(traceback.format_exception(error)[-6:])
        act.wrong(f"{type(error).__name__}: {error}\n{last}")


def _stack(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)[-8:]) if frame is not None else ""
