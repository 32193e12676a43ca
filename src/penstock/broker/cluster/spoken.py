"""Which request goes to whom, and in which version: the page for everything that brokers ask one another.

Before the first request to a registered broker it is asked for its versions (ApiVersions), and each request goes out in the
highest version that both know. Members of other versions of Penstock, and of Apache Kafka in ZooKeeper mode, are members like any
other. A broker that was started again has a new registration, and is asked again: it may be of another version by then.

What a member needs beyond versions (`controller.features`) is in its registration: see `members`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.net.peer_connection import PeerUnavailable
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithMembership, WithPeers
    from penstock.net.peers import Purpose

    class Needs(WithMembership, WithPeers, Protocol): ...


class Row(NamedTuple):
    to: str
    lowest: int
    highest: int
    why_not_lower: str


PAGE: Final[Mapping[ApiKey, Row]] = {
    ApiKey.UPDATE_METADATA: Row("every broker, by the controller", 8, 8, "it says of what kind it is"),
    ApiKey.LEADER_AND_ISR: Row("every broker, by the controller", 7, 7, "topics have ids"),
    ApiKey.STOP_REPLICA: Row("every broker, by the controller", 4, 4, "it names its partitions by topic"),
    ApiKey.ALTER_PARTITION: Row(
        "the controller, by leaders", 3, 3, "it names the registrations of those in sync"
    ),
    ApiKey.CONTROLLED_SHUTDOWN: Row("the controller, by who stops", 3, 3, "it names the registration"),
    ApiKey.CREATE_TOPICS: Row("the controller, for internal topics", 5, 7, "it says what was made"),
    ApiKey.FETCH: Row("leaders, by followers", 15, 17, "it names the follower's registration"),
    ApiKey.LIST_OFFSETS: Row("leaders, by followers", 4, 7, "it names the leader epoch"),
    ApiKey.ADD_PARTITIONS_TO_TXN: Row("coordinators, by leaders", 4, 5, "it asks for several transactions"),
    ApiKey.WRITE_TXN_MARKERS: Row("leaders, by coordinators", 1, 2, "2 says the transaction version"),
}
"""From Kafka's release 3.5 on there is a common version of each."""
ASKED_VERSION: Final = 3
"""Of ApiVersions itself: from Kafka 2.4 on. The answer to a version that is not known has another form, and is refused."""
CLIENT_NAME: Final = "penstock-broker"
ASK_TIMEOUT_S: Final = 5.0

Versions = Mapping[int, tuple[int, int]]


class _Known(NamedTuple):
    registration: int
    versions: Versions


class Spoken:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._known: dict[int, _Known] = {}

    async def version(self, broker_id: int, key: ApiKey, *, purpose: "Purpose" = "control") -> int:
        """The version in which to ask this broker; PeerUnavailable when it does not answer, or knows none that we need."""
        registration = self._node.membership.members.epoch(broker_id)
        known = self._known.get(broker_id)
        if known is None or known.registration != registration:
            known = _Known(registration, await self._ask(broker_id, purpose))
            self._known[broker_id] = known
        return common_version(broker_id, key, known.versions)

    async def _ask(self, broker_id: int, purpose: "Purpose") -> Versions:
        request = ApiVersionsRequest(client_software_name=CLIENT_NAME, client_software_version="1")
        answer = await self._node.peers.ask(
            broker_id,
            request,
            ApiVersionsResponse,
            version=ASKED_VERSION,
            timeout_s=ASK_TIMEOUT_S,
            purpose=purpose,
        )
        if answer.error_code:
            raise PeerUnavailable(
                f"broker {broker_id} does not say its versions: {ErrorCode(answer.error_code).name}"
            )
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def common_version(broker_id: int, key: ApiKey, versions: Versions) -> int:
    row = PAGE[key]
    lowest, highest = versions.get(int(key), (0, -1))
    version = min(row.highest, highest)
    if version < max(row.lowest, lowest):
        theirs = f"versions {lowest}–{highest}" if highest >= lowest else "no version"
        raise PeerUnavailable(
            f"broker {broker_id} knows {theirs} of {key.name}, this broker {row.lowest}–{row.highest}: "
            "upgrade the older of the two"
        )
    return version


def missing_versions(broker_id: int, versions: Versions) -> list[str]:
    """Why a broker of these versions cannot be a member beside us; nothing where it can."""
    found = []
    for key in PAGE:
        try:
            common_version(broker_id, key, versions)
        except PeerUnavailable as error:
            found.append(str(error))
    return found
