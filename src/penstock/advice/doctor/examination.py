"""The door: a cluster in, findings out."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.advice.doctor.checks import NAMES, judge
from penstock.advice.doctor.facts import ServiceFacts
from penstock.advice.doctor.finding import Finding
from penstock.advice.doctor.gathering import LOOK_S, Tell, Watch, gather
from penstock.client.clients import Connection
from penstock.client.errors import UserError


def examine(
    connection: Connection,
    *,
    only: Iterable[str] = (),
    look_s: float = LOOK_S,
    services: Iterable[ServiceFacts] = (),
    tell: Tell = lambda sentence: None,
    watch: Watch | None = None,
) -> list[Finding]:
    """What is wrong or unwise, the most urgent first; [] when nothing is. It blocks for `look_s` and some seconds more.

    `look_s` is the pause between two looks, by which rates are known; with 0 there is one look, and nothing is said of lag that
    grows, hot partitions and disks that will be full. `only` are names of checks. `services` are members of a stack, whom the
    cluster does not know. `tell` hears what is being done. A cluster that does not answer is a finding, not an error.
    """
    wanted = list(only)
    for name in wanted:
        if name not in NAMES:
            raise UserError(f"there is no check '{name}'; there are {', '.join(NAMES)}")
    facts = gather(connection, watch=watch or Watch(look_s), services=services, tell=tell)
    return judge(facts, wanted)
