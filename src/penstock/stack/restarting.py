"""A rolling restart: one member of a service at a time, the next one only when nobody is behind any more.

What "behind" means, who is last and what is to be done at the end is the service's to say (`Rolling`). For brokers: every
replica is in sync, the controller is last so that its office moves once, and the preferred replicas lead again. Interrupted,
a restart leaves at most one member stopped; the next run starts that one first. Members that are not chosen and do not run
stay so, and are not waited for.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from penstock.client.errors import UserError
from penstock.stack import processes
from penstock.stack.ports import check_ports_are_free
from penstock.stack.stack import Member, Service, Stack, Tell
from penstock.stack.starting import bring_up, check_needs, stopped, wait_until_healthy
from penstock.stack.stopping import STOP_TIMEOUT_S, bring_down

SETTLED_TIMEOUT_S = 600.0
PAUSE_S = 0.2


def restart_rolling(
    stack: Stack,
    chosen: list[Member],
    *,
    tell: Tell,
    waiting: Tell,
    timeout_s: float = SETTLED_TIMEOUT_S,
) -> None:
    """`chosen` are members of one service. `timeout_s` bounds each wait until nobody is behind."""
    service = stack.service_of(chosen[0])
    check_needs(stack, service)
    bring_up(stack, stopped(stack, chosen), tell=tell, waiting=waiting)
    away = {member.number for member in stopped(stack, stack.members_of(service.name))}

    def settle() -> None:
        behind = wait_until_settled(stack, service, away, waiting=waiting, timeout_s=timeout_s)
        if behind is not None:
            raise UserError(
                f"after {timeout_s:g} s: {behind}. The restart goes no further; penstock status --data "
                f"{stack.directory} shows more"
            )

    settle()
    last = service.rolling.last(stack) if service.rolling is not None else None
    for member in sorted(chosen, key=lambda one: (one.number == last, one.number)):
        bring_down(stack, [member], tell=tell, waiting=waiting, timeout_s=STOP_TIMEOUT_S)
        check_ports_are_free(stack, member)
        processes.start(stack, member)
        wait_until_healthy(stack, [member], tell=tell, waiting=waiting)
        settle()
    if service.rolling is not None:
        for sentence in service.rolling.done(stack, away):
            tell(sentence)


def wait_until_settled(
    stack: Stack, service: Service, away: Collection[int], *, waiting: Tell, timeout_s: float
) -> str | None:
    """Who is still behind after this time; None when nobody is."""
    deadline_s = time.monotonic() + timeout_s
    while service.rolling is not None:
        behind = service.rolling.behind(stack, away)
        if behind is None or time.monotonic() > deadline_s:
            return behind
        waiting(f"waiting: {behind}")
        time.sleep(PAUSE_S)
    return None


def who_is_behind(stack: Stack, *, waiting: Tell, timeout_s: float) -> list[str]:
    """Of all services that have members that run: who is behind after this time."""
    found = []
    for service in stack.services:
        members = stack.members_of(service.name)
        away = {member.number for member in stopped(stack, members)}
        if len(away) < len(members):
            behind = wait_until_settled(stack, service, away, waiting=waiting, timeout_s=timeout_s)
            found += [behind] if behind is not None else []
    return found
