"""Requests, traffic by topic, the network and what else is counted on the way, under the names of Kafka's MBeans.

`…requestqueuetimems` is the same for all requests: how long one that has arrived waited for the loop's turn. The other times are
of a sample of requests. A request that Kafka calls FetchConsumer or FetchFollower is called Fetch here.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from penstock.broker.metrics.activity import Activity, RequestFacts
from penstock.broker.metrics.facts import BrokerFacts, PartitionFacts
from penstock.broker.metrics.quantiles import BUCKETS, QUANTILES, quantiles
from penstock.broker.metrics.text import Family, Row, escaped, one
from penstock.broker.metrics.traffic import FIELDS
from penstock.model.errors import ErrorCode

US_PER_MS: Final = 1000
QUANTILE_TEXTS: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
_HISTOGRAMS: Final = {
    "totaltimems": ("From the request's arrival until its reply is sent.", US_PER_MS),
    "localtimems": ("Of the handler.", US_PER_MS),
    "remotetimems": ("In wait for others: replicas, disks, or more records.", US_PER_MS),
    "requestqueuetimems": ("Until the handler's turn.", US_PER_MS),
    "responsequeuetimems": ("Until the reply's turn to be sent.", US_PER_MS),
    "responsesendtimems": ("Until the socket has the reply.", US_PER_MS),
    "throttletimems": ("That clients were told to wait for their quotas.", 1),
    "requestbytes": ("Size of the request.", 1),
}
_TRAFFIC: Final = {
    "messages_in": ("messagesin", "Records that were appended."),
    "bytes_in": ("bytesin", "Bytes of records that were appended."),
    "bytes_out": ("bytesout", "Bytes of records that consumers fetched."),
    "bytes_rejected": ("bytesrejected", "Bytes of batches that were too large."),
    "produce_requests": ("totalproducerequests", "Batches that were to be appended."),
    "fetch_requests": ("totalfetchrequests", "Looks at a partition for a consumer."),
    "failed_produce_requests": ("failedproducerequests", "Batches that were refused."),
    "failed_fetch_requests": ("failedfetchrequests", "Partitions that could not be fetched."),
    "replication_bytes_in": ("replicationbytesin", "Bytes fetched from leaders."),
    "replication_bytes_out": ("replicationbytesout", "Bytes that followers fetched."),
}


def families(facts: BrokerFacts) -> Iterator[Family]:
    activity = facts.activity
    if activity is None:
        return
    yield from _topics(activity, facts.partitions)
    yield from _requests(activity)
    yield from _network(activity)
    yield from _replicas(activity)
    yield from _waits(activity, facts)


def _topics(activity: Activity, partitions: Sequence[PartitionFacts]) -> Iterator[Family]:
    counts = {topic: list(each) for topic, each in activity.topics.items()}
    for held in partitions:
        of_topic = counts.setdefault(held.topic, [0] * len(FIELDS))
        of_topic[0] += held.messages_in
        of_topic[1] += held.bytes_in
    labels = {topic: f'{{topic="{escaped(topic)}"}}' for topic in counts}
    for place, field in enumerate(FIELDS):
        name, documentation = _TRAFFIC[field]
        total = activity.gone_topics[place] + sum(each[place] for each in counts.values())
        rows: list[Row] = [("", total)]
        rows += [(labels[topic], each[place]) for topic, each in counts.items() if any(each)]
        yield Family(f"kafka_server_brokertopicmetrics_{name}", documentation, rows, "counter")
    for name in ("producemessageconversions", "fetchmessageconversions"):
        documentation = "Always 0: there is one format of records."
        yield one(f"kafka_server_brokertopicmetrics_{name}", documentation, 0, "counter")


def _requests(activity: Activity) -> Iterator[Family]:
    prefix = "kafka_network_requestmetrics"
    requests = activity.requests
    yield Family(
        f"{prefix}_requests",
        "Requests by version.",
        [
            ({"request": each.request, "version": str(version)}, count)
            for each in requests
            for version, count in each.versions.items()
        ],
        "counter",
    )
    yield Family(
        f"{prefix}_errors",
        "Errors that were answered; a request may have several.",
        [
            ({"request": each.request, "error": error_name(code)}, count)
            for each in requests
            for code, count in sorted(each.errors.items())
        ],
        "counter",
    )
    of_queue = _quantiles(activity.queue_times, US_PER_MS)
    for name, (documentation, unit) in _HISTOGRAMS.items():
        rows: list[Row] = []
        counts: list[Row] = []
        for each in requests:
            label = f'request="{each.request}"'
            if name == "requestqueuetimems":
                values = of_queue
            elif name == "throttletimems":
                values = _quantiles(_with_unthrottled(each), unit)
            else:
                values = _quantiles(each.times[name], unit)
            rows += [
                (f'{{{label},quantile="{text}"}}', value)
                for text, value in zip(QUANTILE_TEXTS, values, strict=True)
            ]
            counts.append((f"{{{label}}}", sum(each.versions.values())))
        yield Family(f"{prefix}_{name}", f"{documentation} Quantiles of the last minutes.", rows)
        yield Family(f"{prefix}_{name}_count", "Requests.", counts)


def _with_unthrottled(each: RequestFacts) -> list[int]:
    """Those that did not have to wait are in the bucket of 0. The list is of the last minutes, so are those about."""
    throttled = each.times["throttletimems"]
    timed = sum(each.times["totaltimems"])
    counts = list(throttled) or [0] * BUCKETS
    counts[0] += max(timed - sum(throttled), 0)
    return counts


def _quantiles(counts: Sequence[int], unit: int) -> list[float]:
    return [round(value / unit, 4) for value in quantiles(counts, QUANTILES)]


def _network(activity: Activity) -> Iterator[Family]:
    yield one(
        "kafka_network_requestchannel_requestqueuesize",
        "Connections with requests that have arrived and wait for their turn.",
        activity.waiting_requests,
    )
    yield one(
        "kafka_network_requestchannel_responsequeuesize",
        "Connections with replies that the socket does not take yet.",
        activity.waiting_replies,
    )
    idle = "Share of the last minute in which the broker's thread had nothing to do."
    yield one("kafka_network_socketserver_networkprocessoravgidle_percent", idle, round(activity.idle, 4))
    yield one(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        f"{idle} It is one thread for all.",
        round(activity.idle, 4),
    )
    prefix = "kafka_server_socket_server_metrics_connection"
    labelled = [({"listener": each.name, "networkProcessor": "0"}, each) for each in activity.listeners]
    yield Family(f"{prefix}_creation", "Connections.", [(of, each.made) for of, each in labelled], "counter")
    yield Family(f"{prefix}_close", "Ended ones.", [(of, each.ended) for of, each in labelled], "counter")
    yield Family(
        f"{prefix}_creation_rate", "New ones a second, of the last minute.",
        [(of, round(each.made_rate, 4)) for of, each in labelled],
    )  # fmt: skip
    yield Family(
        f"{prefix}_close_rate", "Ended ones a second, of the last minute.",
        [(of, round(each.ended_rate, 4)) for of, each in labelled],
    )  # fmt: skip


def _replicas(activity: Activity) -> Iterator[Family]:
    prefix = "kafka_server_replicamanager"
    yield one(f"{prefix}_isrshrinks", "In-sync sets that became smaller.", activity.isr_shrinks, "counter")
    yield one(f"{prefix}_isrexpands", "In-sync sets that grew.", activity.isr_expands, "counter")
    yield one(
        f"{prefix}_failedisrupdates", "Changes that the controller did not take.", activity.failed_isr_updates,
        "counter",
    )  # fmt: skip
    prefix = "kafka_controller_controllerstats"
    yield one(
        f"{prefix}_uncleanleaderelections", "Leaders that this controller made of replicas out of sync.",
        activity.unclean_elections, "counter",
    )  # fmt: skip
    yield one(
        f"{prefix}_leaderelections", "Leaders that this controller made.", activity.elections, "counter"
    )


def _waits(activity: Activity, facts: BrokerFacts) -> Iterator[Family]:
    held = facts.partitions
    rebalances = 0 if facts.groups is None else facts.groups.rebalances
    commits = sum(each.commit_waits for each in held)
    deletions = sum(each.deletion_waits for each in held)
    waits = (
        ("Fetch", activity.waiting_fetches, sum(each.fetch_waits for each in held)),
        ("Produce", commits, commits),
        ("DeleteRecords", deletions, deletions),
        ("Rebalance", rebalances, rebalances),
    )
    prefix = "kafka_server_delayedoperationpurgatory"
    yield Family(
        f"{prefix}_numdelayedoperations", "Requests that wait.",
        [({"delayedOperation": name}, requests) for name, requests, _ in waits],
    )  # fmt: skip
    yield Family(
        f"{prefix}_purgatorysize", "What they wait for: each partition of a request counts.",
        [({"delayedOperation": name}, watched) for name, _, watched in waits],
    )  # fmt: skip
    prefix = "kafka_server_fetchsessioncache"
    yield one(f"{prefix}_numincrementalfetchsessions", "Fetch sessions.", activity.fetch_sessions)
    yield one(
        f"{prefix}_numincrementalfetchpartitionscached",
        "Partitions in them.",
        activity.fetch_session_partitions,
    )
    yield one(
        f"{prefix}_incrementalfetchsessionevictions", "Sessions that made room for others.",
        activity.fetch_session_evictions, "counter",
    )  # fmt: skip
    name = "kafka_log_logflushstats_logflushrateandtimems"
    values = zip(QUANTILE_TEXTS, _quantiles(activity.flush_times, US_PER_MS), strict=True)
    yield Family(
        name, "How long flushes of logs took, in the last minutes.",
        [({"quantile": text}, value) for text, value in values],
    )  # fmt: skip
    yield one(f"{name}_count", "Flushes of logs.", activity.flushes)


def error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
