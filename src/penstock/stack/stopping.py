"""Members brought down: those that need others first, all of a service at once, each in its own time."""

from __future__ import annotations

from penstock.client.errors import UserError
from penstock.stack import processes
from penstock.stack.stack import Member, Stack, Tell
from penstock.stack.stack_file import write_stack

STOP_TIMEOUT_S = 60.0


def bring_down(
    stack: Stack, wanted: list[Member], *, tell: Tell, waiting: Tell, timeout_s: float = STOP_TIMEOUT_S
) -> None:
    """SIGTERM, and no more than that: UserError that names those that did not end in time."""
    for group in reversed(stack.in_start_order(wanted)):
        asked = [member for member in group if processes.ask_to_stop(stack, member)]
        for member in group:
            if member not in asked:
                tell(f"{member.name} does not run")
        if asked:
            waiting(f"waiting for the end of {', '.join(member.name for member in asked)}")
        late = processes.wait_until_ended(stack, asked, timeout_s=timeout_s)
        for member in asked:
            if member not in late:
                tell(f"{member.name} has stopped")
        if late:
            pids = [str(processes.running_pid(stack, member)) for member in late]
            raise UserError(
                f"{', '.join(member.name for member in late)} did not stop within {timeout_s:g} s: run this again to "
                f"wait on, or end it at once with kill -9 {' '.join(pids)}"
            )


def take_out(stack: Stack, member: Member, *, tell: Tell, waiting: Tell) -> None:
    """Stops a member for good: the stack knows it no more. Its data stay, for whoever wants to look."""
    bring_down(stack, [member], tell=tell, waiting=waiting)
    write_stack(stack._replace(members=tuple(one for one in stack.members if one != member)))
    tell(f"{member.name} is out of {stack.directory}; its data are still in {stack.data_of(member)}")
