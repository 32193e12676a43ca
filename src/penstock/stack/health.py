"""Whether members do their work: the checks that rows share, and all members of a stack asked at once."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from penstock.stack import processes
from penstock.stack.stack import Member, Stack

ASK_TIMEOUT_S = 2.0
NO_ANSWER = "does not answer"
NOT_RUNNING = "not running"
MAX_AT_ONCE = 16


def http_health(path: str = "/health") -> Callable[[Stack, Member], str | None]:
    """The check of an HTTP service: GET `path` is answered with 200."""

    def check(stack: Stack, member: Member) -> str | None:
        host, port = stack.address_of(member)
        connection = http.client.HTTPConnection(host, port, timeout=ASK_TIMEOUT_S)
        try:
            connection.request("GET", path)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return NO_ANSWER
        finally:
            connection.close()
        return None if status == http.client.OK else f"answers GET {path} with {status}"

    return check


def problem_of(stack: Stack, member: Member) -> str | None:
    """None for a member that runs and is healthy."""
    if processes.running_pid(stack, member) is None:
        return NOT_RUNNING
    return stack.service_of(member).health_check(stack, member)


def problems_of(stack: Stack, members: Iterable[Member]) -> dict[str, str | None]:
    """`problem_of` each, by name. All are asked at once: some that hang cost no more time than one."""
    asked = list(members)
    if not asked:
        return {}
    with ThreadPoolExecutor(min(len(asked), MAX_AT_ONCE)) as pool:
        problems = pool.map(lambda member: problem_of(stack, member), asked)
        return {member.name: problem for member, problem in zip(asked, problems, strict=True)}
