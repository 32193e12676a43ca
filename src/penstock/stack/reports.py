"""Each member in a row, for `penstock status`: whether it runs and is healthy, since when, where, and how much memory it has."""

from __future__ import annotations

from typing import NamedTuple

from penstock.stack import processes
from penstock.stack.health import problems_of
from penstock.stack.stack import Stack


class MemberReport(NamedTuple):
    """What `penstock status` shows of one process."""

    name: str
    service: str
    healthy: bool
    problem: str | None
    """`not running`, or what its health check says; None when it is healthy."""
    pid: int | None
    port: int
    uptime_s: float | None
    memory_bytes: int | None
    log: str


def member_reports(stack: Stack) -> list[MemberReport]:
    """Of all members; each is asked whether it is healthy."""
    problems = problems_of(stack, stack.members)
    reports = []
    for member in stack.members:
        pid = processes.running_pid(stack, member)
        vitals = processes.vitals_of(pid) if pid is not None else None
        reports.append(
            MemberReport(
                name=member.name,
                service=member.service,
                healthy=problems[member.name] is None,
                problem=problems[member.name],
                pid=pid,
                port=member.port,
                uptime_s=round(vitals.uptime_s, 1) if vitals is not None else None,
                memory_bytes=vitals.memory_bytes if vitals is not None else None,
                log=str(stack.log_of(member)),
            )
        )
    return reports
