"""Which of several instances of a service leads: membership of a group in a thread of its own, by Kafka's group protocol.

    find the coordinator → JoinGroup → SyncGroup → Heartbeat … → (a rebalance: JoinGroup again) … → LeaveGroup

A member that cannot reach the coordinator for as long as its session lasts takes itself for replaced. That is for quick answers
only: what a leader writes that does not know better must be refused or ignored, which is the service's part.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from penstock.client.clients import Connection
from penstock.client.cluster_client import GROUP, BrokerNode, ClusterClient
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.group_identity import (
    Assignment,
    Identity,
    choose,
    read_assignment,
)
from penstock.model.errors import ErrorCode
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

log = logging.getLogger("penstock.client")

RETRY_S: Final = 0.5
ASK_TIMEOUT_S: Final = 10.0
_LOST: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}
)


class GroupOptions(NamedTuple):
    """`protocol_type` and `protocol` say who belongs together: others are refused by the coordinator."""

    protocol_type: str
    protocol: str
    group_id: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int


class _Again(Exception):
    """The group must be joined anew."""


class Leadership:
    """`tell` gets the leader (None: nobody is known) and whether it is this instance; it is called in the thread."""

    def __init__(
        self,
        connection: Connection,
        me: Identity,
        options: GroupOptions,
        tell: Callable[[Identity | None, bool], None],
    ) -> None:
        self._connection = connection
        self._me = me
        self._options = options
        self._tell = tell
        self._member_id = ""
        self._generation = -1
        self._stopped = threading.Event()
        self._told: tuple[Identity | None, bool] = (None, False)
        self._complaint = ""
        self._leader_member_id = ""
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-leadership", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._stopped.set()
        self._news.set()
        self._thread.join(timeout_s)

    def remove_leader(self) -> None:
        """For who knows that its process is dead: the group need not wait for the end of its session. Another thread's call.
        UserError, Refused, Unreachable."""
        member_id = self._leader_member_id
        if not member_id or member_id == self._member_id:
            return
        with ClusterClient(self._connection, timeout_s=ASK_TIMEOUT_S) as client:
            self._send_leave(client, client.coordinator(GROUP, self._options.group_id), member_id)
        self._news.set()

    @property
    def generation(self) -> int:
        """Of the group; -1 when it has not been joined."""
        return self._generation

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with ClusterClient(self._connection, timeout_s=ASK_TIMEOUT_S) as client:
                    self._take_part(client)
            except (Unreachable, Refused, UserError, OSError) as error:
                self._complain(str(error))
            except Exception:
                log.exception("A bug in the thread of the group")
            self._say(None, False)
            self._stopped.wait(RETRY_S)

    def _take_part(self, client: ClusterClient) -> None:
        node = client.coordinator(GROUP, self._options.group_id)
        while not self._stopped.is_set():
            try:
                self._join(client, node)
                self._complaint = ""
                self._beat(client, node)
            except _Again:
                continue
        self._leave(client, node)

    def _join(self, client: ClusterClient, node: BrokerNode) -> None:
        options = self._options
        leads = self._told[1]
        request = JoinGroupRequest(
            group_id=options.group_id,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            member_id=self._member_id,
            protocol_type=options.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(
                    name=options.protocol, metadata=self._me._replace(leads=leads).metadata()
                )
            ],
        )
        patience_s = options.rebalance_timeout_ms / 1000 + ASK_TIMEOUT_S
        joined = client.ask_node(node, request, JoinGroupResponse, timeout_s=patience_s)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            raise _Again
        self._check(joined.error_code)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == joined.member_id:
            chosen = choose({one.member_id: bytes(one.metadata) for one in joined.members})
            if chosen.has_duplicates:
                log.warning("Two instances have the same address: give each its own host.name and port")
            assignments = [
                SyncGroupRequestAssignment(member_id=one.member_id, assignment=chosen.data())
                for one in joined.members
            ]
        synced = client.ask_node(
            node,
            SyncGroupRequest(
                group_id=options.group_id,
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type=options.protocol_type,
                protocol_name=options.protocol,
                assignments=assignments,
            ),
            SyncGroupResponse,
            timeout_s=patience_s,
        )
        self._check(synced.error_code)
        self._assigned(read_assignment(bytes(synced.assignment)))

    def _assigned(self, assignment: Assignment | None) -> None:
        if assignment is None or assignment.identity is None:
            self._complain("no instance may lead (leader.eligibility)")
            self._say(None, False)
            return
        self._leader_member_id = assignment.member_id
        is_me = assignment.member_id == self._member_id
        self._say(assignment.identity, is_me)

    def _beat(self, client: ClusterClient, node: BrokerNode) -> None:
        """Until something changes."""
        options = self._options
        last_s = time.monotonic()
        while not self._stopped.is_set():
            self._news.wait(options.heartbeat_interval_ms / 1000)
            if self._stopped.is_set():
                return
            self._news.clear()
            request = HeartbeatRequest(
                group_id=options.group_id, generation_id=self._generation, member_id=self._member_id
            )
            left_s = last_s + options.session_timeout_ms / 1000 - time.monotonic()
            if left_s <= 0:
                raise Unreachable("the session of the group is over")
            answer = client.ask_node(node, request, HeartbeatResponse, timeout_s=left_s)
            self._check(answer.error_code)
            last_s = time.monotonic()

    def _check(self, code: int) -> None:
        if not code:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            raise _Again
        if code in _LOST:
            self._member_id = "" if code != ErrorCode.ILLEGAL_GENERATION else self._member_id
            self._say(None, False)
            raise _Again
        name = ErrorCode(code).name if code in set(ErrorCode) else str(code)
        raise Refused(f"the coordinator of the group {self._options.group_id} answers {name}", code=code)

    def _leave(self, client: ClusterClient, node: BrokerNode) -> None:
        """So that another one leads at once."""
        if self._member_id:
            self._send_leave(client, node, self._member_id)

    def _send_leave(self, client: ClusterClient, node: BrokerNode, member_id: str) -> None:
        request = LeaveGroupRequest(
            group_id=self._options.group_id,
            member_id=member_id,
            members=[MemberIdentity(member_id=member_id)],
        )
        client.ask_node(node, request, LeaveGroupResponse, timeout_s=1.0)

    def _say(self, leader: Identity | None, is_me: bool) -> None:
        if (leader, is_me) != self._told:
            self._told = (leader, is_me)
            log.info(
                "The leader is %s%s", leader.url if leader else "not known", " (this one)" if is_me else ""
            )
            self._tell(leader, is_me)

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            log.warning("The group %s: %s", self._options.group_id, complaint)
