"""Members of a box brought up: ZooKeeper first, then the brokers all at once, until each sees the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from penstock.cli.box import processes
from penstock.cli.box.composition import BROKER, HOST, ZOOKEEPER, Box, Member
from penstock.cli.failures import Refused, Unreachable, UserError
from penstock.cli.wire_client import WireClient
from penstock.model.endpoints import Address
from penstock.stores.zookeeper_server import server_status
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse

READY_TIMEOUT_S = 90.0
ASK_TIMEOUT_S = 2.0
PAUSE_S = 0.1

Tell = Callable[[str], None]


def check_ports(box: Box, wanted: list[Member]) -> None:
    """UserError when something else has the port of one that does not run."""
    for member in wanted:
        if processes.running_pid(box, member) is None:
            processes.check_port_is_free(box, member)


def check_address(box: Box, known: Box | None) -> None:
    """UserError when brokers that run would have to listen elsewhere."""
    if known is None or known.host == box.host:
        return
    running = [member.name for member in known.brokers if processes.running_pid(known, member) is not None]
    if running:
        raise UserError(
            f"{', '.join(running)} in {box.directory} would have to listen on {box.host} now: penstock down first, "
            "then up with the other --host"
        )


def check_zookeeper_serves(box: Box) -> None:
    if not any(_serves(box, member) for member in box.zookeepers):
        raise UserError(
            f"ZooKeeper does not run: penstock up --data {box.directory} starts it with the brokers"
        )


def bring_up(box: Box, wanted: list[Member], *, tell: Tell, waiting: Tell) -> None:
    """Starts those that do not run, and waits for all of them: a command that was interrupted may have started the others
    a moment ago. `tell` gets a line for each member, `waiting` what is waited for."""
    running = [member for member in wanted if processes.running_pid(box, member) is not None]
    for kind, is_ready in ((ZOOKEEPER, _serves), (BROKER, sees_all)):
        members = [member for member in wanted if member.kind == kind]
        missing = [member for member in members if member not in running]
        if kind == BROKER and missing:
            check_zookeeper_serves(box)
        for member in missing:
            processes.start(box, member)
        wait_until_ready(box, members, is_ready, running=running, tell=tell, waiting=waiting)


def wait_until_ready(
    box: Box,
    members: list[Member],
    is_ready: Callable[[Box, Member], bool],
    *,
    running: Collection[Member] = (),
    tell: Tell,
    waiting: Tell,
    timeout_s: float = READY_TIMEOUT_S,
) -> None:
    """UserError, with the end of its log, for a member that ended or is not ready in time. `running` are those that this
    command did not start."""
    deadline_s = time.monotonic() + timeout_s
    pending = list(members)
    while pending:
        for member in list(pending):
            # Asked before: one that ended just after its answer must be seen the next time.
            if processes.running_pid(box, member) is None:
                raise UserError(f"{member.name} ended: {_log_end(box, member)}")
            if is_ready(box, member):
                how = "runs already" if member in running else "is up"
                tell(f"{member.name} {how} (pid {processes.running_pid(box, member)}, port {member.port})")
                pending.remove(member)
        if pending and time.monotonic() > deadline_s:
            raise UserError(
                f"{pending[0].name} is not ready after {timeout_s:g} s: {_log_end(box, pending[0])}"
            )
        if pending:
            waiting(f"waiting for {', '.join(member.name for member in pending)}")
            time.sleep(PAUSE_S)


def _log_end(box: Box, member: Member) -> str:
    return f"the end of {box.log_of(member)}:\n{processes.log_tail(box, member)}"


def _serves(box: Box, member: Member) -> bool:
    return server_status(HOST, member.port, timeout_s=ASK_TIMEOUT_S) is not None


def sees_all(box: Box, member: Member) -> bool:
    """Whether the broker answers, knows every broker of the box that runs, and has a controller."""
    expected = {one.number for one in box.brokers if processes.running_pid(box, one) is not None}
    try:
        with WireClient(Address(box.broker_host, member.port), timeout_s=ASK_TIMEOUT_S) as client:
            answer = client.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False), MetadataResponse)
    except (Unreachable, Refused):
        return False
    known = {one.node_id for one in answer.brokers}
    return expected <= known and answer.controller_id in known
