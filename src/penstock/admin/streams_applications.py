"""What an application of streams, ours or Kafka Streams', leaves in a cluster: topics of its own and a group with offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from penstock.client.cluster_client import GROUP, ClusterClient
from penstock.client.error_names import refused
from penstock.model.errors import ErrorCode
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_ENDS: Final = (
    "-changelog", "-repartition", "-subscription-registration-topic", "-subscription-response-topic",
)  # fmt: skip
_FOREIGN_KEYS: Final = re.compile(r".*-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic")
GONE: Final = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID})


def internal_topics(names: Iterable[str], application_id: str) -> list[str]:
    """Those that an application of this id has made, in the order given."""
    prefix = f"{application_id}-"
    return [
        name
        for name in names
        if name.startswith(prefix) and (name.endswith(_ENDS) or _FOREIGN_KEYS.fullmatch(name))
    ]


def remove_members(client: ClusterClient, group_id: str, member_ids: Iterable[str]) -> None:
    """Of a classic group: what is left of programs that ended without a word."""
    members = [MemberIdentity(member_id=each, reason="removed by an administrator") for each in member_ids]
    request = LeaveGroupRequest(group_id=group_id, members=members)
    answer = client.ask_coordinator(
        GROUP, group_id, request, LeaveGroupResponse, codes=lambda answer: [answer.error_code]
    )
    for code in (answer.error_code, *(member.error_code for member in answer.members)):
        if code not in GONE:
            raise refused(code)
