"""Members brought up: what a service needs first, then its members all at once, until each is healthy."""

from __future__ import annotations

import time
from collections.abc import Collection

from penstock.client.errors import UserError
from penstock.stack import processes
from penstock.stack.health import problem_of
from penstock.stack.logs import last_lines
from penstock.stack.ports import check_ports_are_free
from penstock.stack.stack import Member, Service, Stack, Tell

READY_TIMEOUT_S = 90.0
PAUSE_S = 0.1
LOG_TAIL_LINES = 5


def running(stack: Stack, members: Collection[Member]) -> list[Member]:
    return [member for member in members if processes.running_pid(stack, member) is not None]


def stopped(stack: Stack, members: Collection[Member]) -> list[Member]:
    return [member for member in members if processes.running_pid(stack, member) is None]


def check_ports(stack: Stack, wanted: list[Member]) -> None:
    """UserError when something else has the port of one that does not run."""
    for member in stopped(stack, wanted):
        check_ports_are_free(stack, member)


def check_address(stack: Stack, known: Stack | None) -> None:
    """UserError when members that run would have to listen elsewhere."""
    if known is None:
        return
    moving = [one for one in known.members if known.host_of(one) != stack.host_of(one)]
    names = [member.name for member in running(known, moving)]
    if names:
        raise UserError(
            f"{', '.join(names)} in {stack.directory} would have to listen on {stack.host} now: penstock down first, "
            "then up with the other --listen"
        )


def check_needs(stack: Stack, service: Service) -> None:
    """UserError when a service that this one needs is not healthy: one healthy member is enough."""
    for name in service.needs:
        members = stack.members_of(name)
        if members and all(problem_of(stack, member) is not None for member in members):
            raise UserError(
                f"{service.name} needs {name}, and no {name} is healthy: penstock up --data {stack.directory} starts "
                "everything in order"
            )


def bring_up(stack: Stack, wanted: list[Member], *, tell: Tell, waiting: Tell) -> None:
    """Starts those that do not run, and waits for all of them: a command that was interrupted may have started the others
    a moment ago. `tell` gets a line for each member, `waiting` what is waited for."""
    ran = running(stack, wanted)
    for group in stack.in_start_order(wanted):
        missing = [member for member in group if member not in ran]
        if missing:
            service = stack.service_of(missing[0])
            check_needs(stack, service)
            if service.prepare is not None:
                service.prepare(stack)
        for member in missing:
            processes.start(stack, member)
        wait_until_healthy(stack, group, ran=ran, tell=tell, waiting=waiting)


def wait_until_healthy(
    stack: Stack,
    members: list[Member],
    *,
    ran: Collection[Member] = (),
    tell: Tell,
    waiting: Tell,
    timeout_s: float = READY_TIMEOUT_S,
) -> None:
    """UserError, with the end of its log, for a member that ended or is not healthy in time. `ran` are those that this
    command did not start."""
    deadline_s = time.monotonic() + timeout_s
    pending = list(members)
    while pending:
        for member in list(pending):
            # Asked before: one that ended just after its answer must be seen the next time.
            pid = processes.running_pid(stack, member)
            if pid is None:
                raise UserError(f"{member.name} ended: {_log_end(stack, member)}")
            if problem_of(stack, member) is None:
                how = "runs already" if member in ran else "is up"
                tell(f"{member.name} {how} (pid {pid}, port {member.port})")
                pending.remove(member)
        if pending and time.monotonic() > deadline_s:
            raise UserError(
                f"{pending[0].name} is not ready after {timeout_s:g} s: {_log_end(stack, pending[0])}"
            )
        if pending:
            waiting(f"waiting for {', '.join(member.name for member in pending)}")
            time.sleep(PAUSE_S)


def _log_end(stack: Stack, member: Member) -> str:
    lines = last_lines(stack.log_of(member), LOG_TAIL_LINES)
    return f"the end of {stack.log_of(member)}:\n" + "\n".join(f"  {line}" for line in lines)
