"""Members of a box brought down: brokers first, all at once, each in its own time; ZooKeeper when none needs it."""

from __future__ import annotations

from penstock.cli.box import processes
from penstock.cli.box.composition import BROKER, ZOOKEEPER, Box, Member, write_box
from penstock.cli.box.starting import Tell
from penstock.cli.failures import UserError

STOP_TIMEOUT_S = 60.0


def bring_down(
    box: Box, wanted: list[Member], *, tell: Tell, waiting: Tell, timeout_s: float = STOP_TIMEOUT_S
) -> None:
    """SIGTERM, and no more than that: UserError that names those that did not end in time."""
    for kind in (BROKER, ZOOKEEPER):
        members = [member for member in wanted if member.kind == kind]
        asked = [member for member in members if processes.ask_to_stop(box, member)]
        for member in members:
            if member not in asked:
                tell(f"{member.name} does not run")
        if asked:
            waiting(f"waiting for the end of {', '.join(member.name for member in asked)}")
        late = processes.wait_until_ended(box, asked, timeout_s=timeout_s)
        for member in asked:
            if member not in late:
                tell(f"{member.name} has stopped")
        if late:
            pids = [str(processes.running_pid(box, member)) for member in late]
            raise UserError(
                f"{', '.join(member.name for member in late)} did not stop within {timeout_s:g} s: run this again to "
                f"wait on, or end it at once with kill -9 {' '.join(pids)}"
            )


def take_out(box: Box, member: Member, *, tell: Tell, waiting: Tell) -> None:
    """Stops a broker for good: the box knows it no more. Its data stay, for whoever wants to look."""
    bring_down(box, [member], tell=tell, waiting=waiting)
    write_box(box._replace(members=tuple(one for one in box.members if one != member)))
    tell(f"{member.name} is out of {box.directory}; its data are still in {box.data_of(member)}")
