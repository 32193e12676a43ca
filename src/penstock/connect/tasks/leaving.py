"""A member with a name of its own tells the group that it leaves: librdkafka leaves it a member until its session is over."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from penstock.client.clients import Connection
from penstock.client.cluster_client import GROUP, ClusterClient
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

log = logging.getLogger("penstock.connect")

BOOTSTRAP = "bootstrap.servers"
TIMEOUT_S = 3.0


def leave(properties: Mapping[str, str], group: str, instance: str, member_id: str) -> None:
    """`properties` of a consumer, in Kafka's names. A successor of that name has another member id, and stays. Where that
    fails, the group notices by itself, later."""
    member = MemberIdentity(member_id=member_id, group_instance_id=instance, reason="the task ends")
    request = LeaveGroupRequest(group_id=group, members=[member])
    given = {name: value for name, value in properties.items() if name != BOOTSTRAP}
    try:
        with ClusterClient(
            Connection(properties[BOOTSTRAP], given, timeout_s=TIMEOUT_S), timeout_s=TIMEOUT_S
        ) as client:
            client.ask_coordinator(
                GROUP, group, request, LeaveGroupResponse, codes=lambda answer: [answer.error_code]
            )
    except (UserError, Unreachable, Refused, OSError) as error:
        log.info("%s stays in the group %s until its session is over: %s", instance, group, error)
