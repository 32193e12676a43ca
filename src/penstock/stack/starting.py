"""Members brought up: each service when what it needs is healthy, its members all at once, until each is healthy."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from penstock.client.errors import UserError
from penstock.stack import processes
from penstock.stack.health import problem_of, problems_of
from penstock.stack.logs import last_lines
from penstock.stack.ports import check_ports_are_free
from penstock.stack.stack import Member, Service, Stack, Tell

READY_TIMEOUT_S = 90.0
PAUSE_S = 0.1
LOG_TAIL_LINES = 5

Show = Callable[[str, str], None]
"""Gets a member's name and how it is: waits, starts, runs (before it is asked), healthy, ended, late."""


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


def bring_up(
    stack: Stack, wanted: list[Member], *, tell: Tell, waiting: Tell, show: Show = lambda name, state: None
) -> None:
    """Starts those that do not run, and waits for all of them: a command that was interrupted may have started the others
    a moment ago. A service is started when what it needs is healthy, beside others that need no more. `tell` gets a line for
    each member, `waiting` what is waited for, and `show` how each is, whenever that changes."""
    start = Start(stack, wanted, tell=tell, show=show)
    while start.step():
        if start.pending:
            waiting(f"waiting for {', '.join(start.pending)}")
        time.sleep(PAUSE_S)


class Start:
    """Members on their way up. The deadline of each is counted from its own start."""

    def __init__(self, stack: Stack, wanted: list[Member], *, tell: Tell, show: Show) -> None:
        self._stack = stack
        self._tell, self._show = tell, show
        self._ran = running(stack, wanted)
        self._groups = stack.in_start_order(wanted)
        self._pending: list[tuple[Member, float]] = []
        for group in self._groups:
            for member in group:
                show(member.name, "runs" if member in self._ran else "waits")

    @property
    def pending(self) -> list[str]:
        return [member.name for member, _ in self._pending]

    def step(self) -> bool:
        """Starts what can be started, and looks at what was. False when all are healthy. UserError for one that ended, with the
        end of its log, or is late."""
        for group in list(self._groups):
            if self._has_its_needs(group[0]):
                self._groups.remove(group)
                self._begin(group)
        self._look()
        return bool(self._groups or self._pending)

    def _has_its_needs(self, member: Member) -> bool:
        needs = self._stack.service_of(member).needs
        unsettled = [one.service for group in self._groups for one in group]
        unsettled += [one.service for one, _ in self._pending]
        return not set(needs).intersection(unsettled)

    def _begin(self, group: list[Member]) -> None:
        missing = [member for member in group if member not in self._ran]
        if missing:
            service = self._stack.service_of(missing[0])
            check_needs(self._stack, service)
            if service.prepare is not None:
                service.prepare(self._stack)
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        for member in group:
            if member in missing:
                processes.start(self._stack, member)
                self._show(member.name, "starts")
            self._pending.append((member, deadline_s))

    def _look(self) -> None:
        # Asked before: one that ended just after its answer must be seen the next time.
        pids = {member.name: processes.running_pid(self._stack, member) for member, _ in self._pending}
        for member, _ in self._pending:
            if pids[member.name] is None:
                self._show(member.name, "ended")
                raise UserError(f"{member.name} ended: {_log_end(self._stack, member)}")
        problems = problems_of(self._stack, [member for member, _ in self._pending])
        for member, deadline_s in list(self._pending):
            if problems[member.name] is None:
                how = "runs already" if member in self._ran else "is up"
                self._show(member.name, "healthy")
                self._tell(f"{member.name} {how} (pid {pids[member.name]}, port {member.port})")
                self._pending.remove((member, deadline_s))
            elif time.monotonic() > deadline_s:
                self._show(member.name, "late")
                raise UserError(
                    f"{member.name} is not ready after {READY_TIMEOUT_S:g} s: {_log_end(self._stack, member)}"
                )


def wait_until_healthy(
    stack: Stack,
    members: list[Member],
    *,
    tell: Tell,
    waiting: Tell,
    timeout_s: float = READY_TIMEOUT_S,
) -> None:
    """UserError, with the end of its log, for a member that ended or is not healthy in time."""
    deadline_s = time.monotonic() + timeout_s
    pending = list(members)
    while pending:
        for member in list(pending):
            # Asked before: one that ended just after its answer must be seen the next time.
            pid = processes.running_pid(stack, member)
            if pid is None:
                raise UserError(f"{member.name} ended: {_log_end(stack, member)}")
            if problem_of(stack, member) is None:
                tell(f"{member.name} is up (pid {pid}, port {member.port})")
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
