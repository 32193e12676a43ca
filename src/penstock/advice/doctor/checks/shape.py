"""Configs whose values cost files, memory or time: segments, sizes of messages, timestamps, versions, listeners."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator

from penstock.advice.doctor.checks.availability import is_loopback
from penstock.advice.doctor.facts import BrokerFacts, Facts, TopicFacts
from penstock.advice.doctor.finding import Finding, Severity, listed
from penstock.advice.doctor.limits import (
    CLOCKS_APART_S,
    FUTURE_S,
    LARGE_MESSAGE_BYTES,
    SHORT_SEGMENT_MS,
    SMALL_SEGMENT_BYTES,
)
from penstock.advice.doctor.words import commands, count, duration, ids, size, word
from penstock.model.api_keys import ApiKey
from penstock.model.internal_topics import CONSUMER_OFFSETS


def segments(facts: Facts) -> Iterator[Finding]:
    """Segments so small or so short that there are many files."""
    small = []
    for topic, _ in facts.of_users():
        bytes_, ms = topic.number("segment.bytes"), topic.number("segment.ms")
        if bytes_ is not None and bytes_ < SMALL_SEGMENT_BYTES:
            small.append((topic, "segment.bytes", f"{topic.name}: segment.bytes={bytes_} ({size(bytes_)})"))
        elif ms is not None and ms < SHORT_SEGMENT_MS:
            small.append((topic, "segment.ms", f"{topic.name}: segment.ms={ms} ({duration(ms / 1000)})"))
    if small:
        yield Finding(
            Severity.NOTE,
            f"{count(len(small), 'topic')} with tiny segments",
            listed([line for _, _, line in small]),
            "Each segment is four open files and memory, and each change of segment a sync. The default is 1 GiB and 7 days; "
            "retention and compaction work segment by segment, so short retentions want smaller ones, but not these.",
            commands(_back_to_default(topic, name) for topic, name, _ in small),
        )


def _back_to_default(topic: TopicFacts, name: str) -> str:
    setting = topic.settings.get(name)
    if setting is not None and setting.is_own:
        return f"penstock configs delete --topic {word(topic.name)} {name}"
    larger = {"segment.bytes": "1073741824", "segment.ms": "604800000"}[name]
    return f"penstock configs set --topic {word(topic.name)} {name}={larger}"


def message_size(facts: Facts) -> Iterator[Finding]:
    """Batches that may be so large that they cost memory everywhere."""
    large = [
        (topic, limit)
        for topic, _ in facts.of_users()
        if (limit := topic.number("max.message.bytes")) is not None and limit > LARGE_MESSAGE_BYTES
    ]
    if large:
        own = [topic for topic, _ in large if topic.settings["max.message.bytes"].is_own]
        yield Finding(
            Severity.NOTE,
            f"{count(len(large), 'topic')} with a huge max.message.bytes",
            listed([f"{topic.name}: max.message.bytes={limit} ({size(limit)})" for topic, limit in large]),
            "Brokers, followers and each consumer must hold such a batch at once. Keep large things in an object store, and send "
            "where they are.",
            commands(f"penstock configs delete --topic {word(topic.name)} max.message.bytes" for topic in own)
            or "penstock configs describe --broker-defaults --all",
        )


def future_records(facts: Facts) -> Iterator[Finding]:
    """Timestamps of the future: retention by time does not delete such records before their time has come."""
    ahead = [
        (one.newest_ms - facts.last_look_ms, one)
        for one in facts.partitions
        if one.newest_ms is not None and one.newest_ms - facts.last_look_ms > FUTURE_S * 1000
    ]
    if ahead:
        topics = sorted({one.partition.topic for _, one in ahead})
        yield Finding(
            Severity.WARNING,
            f"{count(len(topics), 'topic')} with records of the future",
            listed(
                [
                    f"{one.partition}: newest {_date(one.newest_ms or 0)}, {duration(by / 1000)} from now"
                    for by, one in ahead
                ]
            ),
            "A producer's clock is wrong, or it writes seconds or microseconds where milliseconds belong. Their "
            "segments stay until "
            "that time has passed. Let brokers refuse such records.",
            commands(
                f"penstock configs set --topic {word(topic)} message.timestamp.after.max.ms=3600000"
                for topic in topics
            ),
        )


def _date(ms: int) -> str:
    try:
        return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def clocks(facts: Facts) -> Iterator[Finding]:
    """Brokers' clocks beside ours, by timestamps that brokers wrote between the looks: of committed offsets, and in topics
    with LogAppendTime. A broker that wrote nothing is not judged."""
    apart: dict[int, float] = {}
    for one in facts.partitions:
        if one.newest_ms is None or not _has_broker_time(facts.topic(one.partition.topic)):
            continue
        ahead_ms = one.newest_ms - facts.last_look_ms
        behind_ms = facts.first_look_ms - one.newest_ms if one.written else 0
        off_s = (ahead_ms if ahead_ms > 0 else -behind_ms if behind_ms > 0 else 0) / 1000
        if abs(off_s) > abs(apart.get(one.leader, 0.0)):
            apart[one.leader] = off_s
    wrong = {broker: off_s for broker, off_s in apart.items() if abs(off_s) > CLOCKS_APART_S}
    if wrong:
        yield Finding(
            Severity.WARNING,
            f"{count(len(wrong), 'clock')} apart from this machine's",
            listed(
                [
                    f"broker {broker} is {'ahead' if off_s > 0 else 'behind'} by at least {abs(off_s):,.1f} s"
                    for broker, off_s in sorted(wrong.items())
                ]
            ),
            "Retention, timestamps, tokens and transactions go by these clocks. Let all machines follow a time "
            "server (chrony, ntpd).",
        )


def _has_broker_time(topic: TopicFacts) -> bool:
    return topic.name == CONSUMER_OFFSETS or topic.setting("message.timestamp.type") == "LogAppendTime"


def versions(facts: Facts) -> Iterator[Finding]:
    """Brokers that do not understand the same versions of the protocol."""
    known = [one for one in facts.brokers if one.apis]
    if len({tuple(sorted(one.apis.items())) for one in known}) < 2:
        return
    differing = {
        key: {one.id: one.apis.get(key) for one in known}
        for key in sorted({key for one in known for key in one.apis})
        if len({one.apis.get(key) for one in known}) > 1
    }
    lines = [
        f"{_api_name(key)}: "
        + ", ".join(f"broker {broker} {_range(held)}" for broker, held in of_each.items())
        for key, of_each in differing.items()
    ]
    yield Finding(
        Severity.WARNING,
        f"brokers are of different versions: they differ in {count(len(differing), 'API')}",
        listed(lines),
        "That is right while a cluster is upgraded, one broker after the other, and wrong afterwards.",
        "kafka-broker-api-versions",
    )


def _api_name(key: int) -> str:
    try:
        return ApiKey(key).name
    except ValueError:
        return f"API {key}"


def _range(held: tuple[int, int] | None) -> str:
    return "has none" if held is None else f"{held[0]} to {held[1]}"


def security(facts: Facts) -> Iterator[Finding]:
    """Listeners that others on the network reach without a login or without encryption."""
    open_: list[str] = []
    plain: list[str] = []
    for broker in facts.brokers:
        for listener, host, port, protocol in _listeners(broker):
            if is_loopback(host) or listener in _controllers(broker):
                continue
            line = f"broker {broker.id}: {listener}://{host or '*'}:{port} ({protocol})"
            if protocol == "PLAINTEXT" or (
                protocol == "SSL" and broker.setting("ssl.client.auth") not in ("required", None)
            ):
                open_.append(line)
            elif protocol == "SASL_PLAINTEXT":
                plain.append(line)
    if open_:
        without = [
            one.id for one in facts.brokers if one.settings and not one.setting("authorizer.class.name")
        ]
        rules = (f"without access rules (authorizer.class.name): brokers {ids(without)}",) if without else ()
        yield Finding(
            Severity.WARNING,
            f"{count(len(open_), 'listener')} open to the network without a login",
            (*listed(open_, 9), *rules),
            "Everybody who reaches the port can read, write and delete. Listen on 127.0.0.1, or ask for TLS and a login.",
            "penstock up --secure --data ./penstock-data",
        )
    if plain:
        yield Finding(
            Severity.WARNING,
            f"{count(len(plain), 'listener')} with logins but without encryption",
            listed(plain),
            "Passwords of PLAIN, and all records, can be read on the way. Use SASL_SSL.",
            "penstock certs --help",
        )


def _listeners(broker: BrokerFacts) -> Iterator[tuple[str, str, int, str]]:
    """Name, host, port, security protocol."""
    protocols = dict(
        pair.strip().split(":", 1)
        for pair in (broker.setting("listener.security.protocol.map") or "").split(",")
        if ":" in pair
    )
    for text in (broker.setting("listeners") or "").split(","):
        name, separator, address = text.strip().partition("://")
        host, _, port = address.rpartition(":")
        if separator and port.isdigit():
            yield name, host.strip("[]"), int(port), protocols.get(name, name)


def _controllers(broker: BrokerFacts) -> set[str]:
    return {name.strip() for name in (broker.setting("controller.listener.names") or "").split(",")}


def uneven_settings(facts: Facts) -> Iterator[Finding]:
    """Settings that should be alike on all brokers, and are not."""
    lines = []
    for name in ALIKE:
        values = Counter(one.setting(name) for one in facts.brokers if name in one.settings)
        if len(values) > 1:
            of_each = ", ".join(
                f"broker {one.id} {one.setting(name)}" for one in facts.brokers if name in one.settings
            )
            lines.append(f"{name}: {of_each}")
    if lines:
        yield Finding(
            Severity.WARNING,
            f"{count(len(lines), 'setting')} not the same on all brokers",
            listed(lines),
            "What holds for a topic then depends on who leads it, or who is controller.",
            commands(f"penstock configs describe --broker {one.id} --all" for one in facts.brokers[:2]),
        )


ALIKE = (
    "auto.create.topics.enable",
    "default.replication.factor",
    "num.partitions",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "message.max.bytes",
    "log.retention.ms",
    "log.retention.bytes",
    "offsets.retention.minutes",
    "authorizer.class.name",
)
