"""Members of a box brought up: ZooKeeper first, then the brokers all at once, until each sees the others."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.cli.box import processes
from penstock.cli.box.composition import BROKER, HOST, ZOOKEEPER, Box, Member
from penstock.cli.failures import Refused, Unreachable, UserError
from penstock.cli.reach import Address
from penstock.cli.wire_client import WireClient
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


def bring_up(box: Box, wanted: list[Member], *, tell: Tell, waiting: Tell) -> None:
    """Starts those that do not run. `tell` gets a line for each thing done, `waiting` what is waited for."""
    missing = [member for member in wanted if processes.running_pid(box, member) is None]
    _start(box, [member for member in missing if member.kind == ZOOKEEPER], _serves, tell, waiting)
    brokers = [member for member in missing if member.kind == BROKER]
    if brokers:
        if not any(_serves(box, member) for member in box.zookeepers):
            raise UserError(
                f"ZooKeeper does not run: penstock up --data {box.directory} starts it with the brokers"
            )
        _start(box, brokers, sees_all, tell, waiting)


def _start(
    box: Box, members: list[Member], is_ready: Callable[[Box, Member], bool], tell: Tell, waiting: Tell
) -> None:
    for member in members:
        processes.start(box, member)
    wait_until_ready(box, members, is_ready, tell=tell, waiting=waiting)


def wait_until_ready(
    box: Box,
    members: list[Member],
    is_ready: Callable[[Box, Member], bool],
    *,
    tell: Tell,
    waiting: Tell,
    timeout_s: float = READY_TIMEOUT_S,
) -> None:
    """UserError, with the end of its log, for a member that ended or is not ready in time."""
    deadline_s = time.monotonic() + timeout_s
    pending = list(members)
    while pending:
        waiting(f"waiting for {', '.join(member.name for member in pending)}")
        for member in list(pending):
            # Asked before: one that ended just after its answer must be seen the next time.
            if processes.running_pid(box, member) is None:
                raise UserError(f"{member.name} ended: {_log_end(box, member)}")
            if is_ready(box, member):
                tell(f"{member.name} is up (pid {processes.running_pid(box, member)}, port {member.port})")
                pending.remove(member)
        if pending and time.monotonic() > deadline_s:
            raise UserError(
                f"{pending[0].name} is not ready after {timeout_s:g} s: {_log_end(box, pending[0])}"
            )
        if pending:
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
