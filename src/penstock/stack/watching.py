"""Members watched in the foreground: one that dies is started again by its policy, and changes of health are told.

Other commands may work in the directory meanwhile. What they stop is not started again: a member that was stopped in order has
no pid file, one that died has. So whoever died is judged under the lock of the directory only, when no other command is in the
middle of something. A member that hangs is told and not killed: a broker that is slow under load would be made slower.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.client.errors import UserError
from penstock.stack import processes
from penstock.stack.health import NOT_RUNNING, problems_of
from penstock.stack.restart_policy import Deaths
from penstock.stack.stack import Member, Stack, Tell
from penstock.stack.stack_file import Locked, locked, read_stack
from penstock.stack.starting import check_needs, running

NEEDS_PAUSE_S = 1.0
POLL_PAUSE_S = 0.2
HEALTH_PAUSE_S = 2.0
START_GRACE_S = 30.0
"""So long nothing bad is told of the health of a member that was started."""
WATCH_LOCK_NAME = "watch.lock"


class Watched:
    """What the watch knows of one member."""

    def __init__(self, deaths: Deaths) -> None:
        self.deaths = deaths
        self.pid: int | None = None
        self.since_s = 0.0
        self.start_at_s: float | None = None
        """When it is started again; None while it runs, was stopped, or is given up."""
        self.problem: str | None = None
        """What was told last of its health."""
        self.is_fresh = False
        """Started a moment ago, and not healthy yet."""
        self.is_given_up = False


class Watch:
    def __init__(self, directory: Path, *, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._tell = tell
        self._clock = clock
        self._members: dict[str, Watched] = {}
        self._next_health_s = 0.0
        self._is_first_look = True

    @property
    def given_up(self) -> list[str]:
        return [name for name, watched in self._members.items() if watched.is_given_up]

    def run(self) -> None:
        """Until nothing runs and nothing is to be started again. Interrupts are the caller's."""
        while self.step():
            time.sleep(POLL_PAUSE_S)

    def step(self) -> bool:
        """One look at everything. False when there is nothing left to watch."""
        stack = read_stack(self._directory)
        if stack is None:  # penstock down --volumes
            return False
        now_s = self._clock()
        absent = [member for member in stack.members if not self._sees_running(stack, member, now_s)]
        self._is_first_look = False
        due = [member for member in absent if self._is_due(member, now_s)]
        if due:
            self._attend(due)
        if now_s >= self._next_health_s:
            self._next_health_s = now_s + HEALTH_PAUSE_S
            self._look_at_health(stack, now_s)
        return any(one.pid is not None or one.start_at_s is not None for one in self._members.values())

    def _sees_running(self, stack: Stack, member: Member, now_s: float) -> bool:
        pid = processes.running_pid(stack, member)
        if pid is None:
            return False
        watched = self._members.get(member.name)
        if watched is None:
            watched = self._members[member.name] = Watched(Deaths(stack.service_of(member).restart_policy))
        if watched.pid != pid:
            watched.pid, watched.since_s, watched.is_fresh = pid, now_s, not self._is_first_look
            watched.start_at_s, watched.is_given_up = None, False
        return True

    def _is_due(self, member: Member, now_s: float) -> bool:
        """Whether there is something to do about one that does not run: the lock is left to others otherwise."""
        watched = self._members.get(member.name)
        if watched is None:
            return False
        return watched.pid is not None or (watched.start_at_s is not None and now_s >= watched.start_at_s)

    def _attend(self, due: list[Member]) -> None:
        try:
            with locked(self._directory, patience_s=0):
                stack = read_stack(self._directory)  # another command may have changed it
                if stack is None:
                    return
                for member in due:
                    if member in stack.members:
                        self._judge(stack, member, self._members[member.name])
                    else:
                        del self._members[member.name]
        except Locked:
            pass  # it may be stopping or restarting them: looked at again when it is done

    def _judge(self, stack: Stack, member: Member, watched: Watched) -> None:
        now_s = self._clock()
        if processes.running_pid(stack, member) is not None:
            return
        if not stack.pid_of(member).exists():
            if watched.pid is not None or watched.start_at_s is not None:
                self._tell(f"{member.name} was stopped, and is left alone")
            watched.pid = watched.start_at_s = None
            watched.deaths.forget()
        elif watched.pid is not None:
            self._mourn(stack, member, watched, now_s)
        elif watched.start_at_s is not None and now_s >= watched.start_at_s:
            self._start(stack, member, watched, now_s)

    def _mourn(self, stack: Stack, member: Member, watched: Watched, now_s: float) -> None:
        ending = processes.ending_of(watched.pid) if watched.pid is not None else ""
        pause_s = watched.deaths.pause_s(now_s, lived_s=now_s - watched.since_s)
        watched.pid = None
        if pause_s is None:
            watched.is_given_up, watched.start_at_s = True, None
            policy = stack.service_of(member).restart_policy
            self._tell(
                f"{member.name} died {policy.max_deaths} times within {policy.window_s:g} s and is given up: "
                f"{stack.log_of(member)} tells why, penstock up --only {member.name} --data {stack.directory} starts it"
            )
            return
        watched.start_at_s = now_s + pause_s
        how = f" {ending}" if ending else ""
        self._tell(f"{member.name} died{how}, and is started again in {pause_s:g} s")

    def _start(self, stack: Stack, member: Member, watched: Watched, now_s: float) -> None:
        try:
            check_needs(stack, stack.service_of(member))
        except UserError as error:
            self._wait_for_needs(stack, member, watched, now_s, error)
            return
        try:
            pid = processes.start(stack, member)
        except UserError as error:  # a full disk, for example: no death, but no life either
            pause_s = watched.deaths.pause_s(now_s, lived_s=None)
            watched.start_at_s = None if pause_s is None else now_s + pause_s
            watched.is_given_up = pause_s is None
            then = "it is given up" if pause_s is None else f"tried again in {pause_s:g} s"
            self._tell(f"{error}; {then}")
            return
        watched.pid, watched.since_s, watched.start_at_s, watched.is_fresh = pid, now_s, None, True
        self._tell(f"{member.name} is started again (pid {pid})")

    def _wait_for_needs(
        self, stack: Stack, member: Member, watched: Watched, now_s: float, error: UserError
    ) -> None:
        """What it needs is started first. Where that is given up, so is this one: nobody would start it any more."""
        for name in stack.service_of(member).needs:
            needed = [
                self._members.get(one.name) for one in stack.members if stack.service_of(one).name == name
            ]
            if needed and all(one is not None and one.is_given_up for one in needed):
                watched.is_given_up, watched.start_at_s = True, None
                self._tell(f"{member.name} is given up: {error}")
                return
        watched.start_at_s = now_s + NEEDS_PAUSE_S

    def _look_at_health(self, stack: Stack, now_s: float) -> None:
        for name, problem in problems_of(stack, running(stack, stack.members)).items():
            watched = self._members.get(name)
            if watched is None or watched.pid is None or problem == NOT_RUNNING:
                continue  # it ended between two questions: the next look judges that
            if watched.is_fresh and problem is not None and now_s - watched.since_s < START_GRACE_S:
                continue
            if problem is None and (watched.is_fresh or watched.problem is not None):
                self._tell(f"{name} is healthy")
            elif problem is not None and problem != watched.problem:
                self._tell(f"{name} is not healthy: {problem}")
            watched.problem, watched.is_fresh = problem, False


@contextlib.contextmanager
def only_watch(directory: Path) -> Iterator[None]:
    """UserError while another watches the directory: two would start a member twice."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(directory, patience_s=0, file_name=WATCH_LOCK_NAME))
        except Locked:
            raise UserError(f"another penstock up --foreground watches {directory}") from None
        yield
