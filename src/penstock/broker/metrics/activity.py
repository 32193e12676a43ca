"""A copy of what was counted: requests, what came and went by topic, connections, elections, flushes.

Lists of counts are copied on the loop; their quantiles are computed in a thread.
"""

import asyncio
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.broker.metrics.quantiles import Histogram
from penstock.broker.metrics.request_counts import ApiCounts
from penstock.broker.metrics.traffic import FIELDS
from penstock.model.api_keys import ApiKey

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithChanges,
        WithClustered,
        WithFetchSessions,
        WithFlushes,
        WithPartitions,
        WithRequestCounts,
        WithRoles,
    )
    from penstock.net.listener import Listener

    class Needs(
        WithChanges,
        WithClustered,
        WithFetchSessions,
        WithFlushes,
        WithPartitions,
        WithRequestCounts,
        WithRoles,
        Protocol,
    ): ...


AT_ONCE: Final = 200
_traffic = attrgetter(*FIELDS)


class RequestFacts(NamedTuple):
    request: str
    versions: dict[int, int]
    errors: dict[int, int]
    times: dict[str, list[int]]
    """Counts of buckets by Kafka's name of the histogram: microseconds, but of `requestbytes` and `throttletimems`."""


class ListenerFacts(NamedTuple):
    name: str
    open: int
    made: int
    ended: int
    made_rate: float
    ended_rate: float


class Activity(NamedTuple):
    requests: list[RequestFacts]
    topics: dict[str, tuple[int, ...]]
    """By topic what `traffic.FIELDS` count, without what came in since this broker leads its partitions."""
    gone_topics: tuple[int, ...]
    listeners: list[ListenerFacts]
    idle: float
    """Of the loop's thread, from 0 to 1."""
    queue_times: list[int]
    waiting_requests: int
    waiting_replies: int
    waiting_fetches: int
    fetch_sessions: int
    fetch_session_partitions: int
    fetch_session_evictions: int
    isr_shrinks: int
    isr_expands: int
    failed_isr_updates: int
    elections: int
    unclean_elections: int
    flushes: int
    flush_times: list[int]


class Networked(NamedTuple):
    """Of the network, which the node does not know."""

    listeners: "list[Listener]"
    lags: Histogram
    idle: float
    rates: Sequence[float]
    """Of `came_and_went`."""


def came_and_went(listeners: "list[Listener]") -> tuple[int, ...]:
    return tuple(count for each in listeners for count in (each.served_count, each.ended_count))


async def copy_activity(node: "Needs", networked: Networked, *, waiting_fetches: int) -> Activity:
    topics: dict[str, tuple[int, ...]] = {}
    for number, topic in enumerate(node.partitions.topics(), 1):
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
        topics[topic.name] = _traffic(topic.traffic)
    waiting_requests = waiting_replies = 0
    for listener in networked.listeners:
        for number, connection in enumerate(list(listener.connections), 1):
            if number % (5 * AT_ONCE) == 0:
                await asyncio.sleep(0)
            waiting_requests += connection.has_waiting_requests
            waiting_replies += connection.has_waiting_replies
    isr_changes = node.roles.isr_changes if node.is_clustered else None
    changes, sessions, rates = node.changes, node.fetch_sessions, networked.rates
    return Activity(
        requests=[_request(api_key, counts) for api_key, counts in node.request_counts.all()],
        topics=topics,
        gone_topics=_traffic(node.partitions.gone_traffic),
        listeners=[
            ListenerFacts(
                each.name,
                each.connection_count,
                each.served_count,
                each.ended_count,
                *(rates[2 * place : 2 * place + 2] or (0.0, 0.0)),
            )
            for place, each in enumerate(networked.listeners)
        ],
        idle=networked.idle,
        queue_times=networked.lags.counts(),
        waiting_requests=waiting_requests,
        waiting_replies=waiting_replies,
        waiting_fetches=waiting_fetches,
        fetch_sessions=len(sessions),
        fetch_session_partitions=sessions.partition_count(),
        fetch_session_evictions=sessions.evicted_count,
        isr_shrinks=0 if isr_changes is None else isr_changes.shrink_count,
        isr_expands=0 if isr_changes is None else isr_changes.expand_count,
        failed_isr_updates=0 if isr_changes is None else isr_changes.failed_count,
        elections=changes.election_count,
        unclean_elections=changes.unclean_election_count,
        flushes=node.flushes.count,
        flush_times=node.flushes.times.counts(),
    )


def _request(api_key: int, counts: ApiCounts) -> RequestFacts:
    times = counts.times
    return RequestFacts(
        request=api_name(api_key),
        versions=counts.versions(),
        errors=dict(counts.errors),
        times={
            "totaltimems": times.total.counts(),
            "localtimems": times.local.counts(),
            "remotetimems": times.remote.counts(),
            "responsequeuetimems": times.response_queue.counts(),
            "responsesendtimems": times.response_send.counts(),
            "requestbytes": times.request_bytes.counts(),
            "throttletimems": [] if counts.throttled is None else counts.throttled.counts(),
        },
    )


def api_name(api_key: int) -> str:
    """As Kafka has it: OFFSET_COMMIT is OffsetCommit."""
    return "".join(word.capitalize() for word in ApiKey(api_key).name.split("_"))
