"""Creates the dead letter topic before it is needed, so that a problem shows at the start."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException

from penstock.client.librdkafka_calls import NO_ANSWER
from penstock.consumer.dead_letters import HEADERS_MAX_BYTES
from penstock.consumer.failures import DeadLetterNotWritten, Stopped
from penstock.consumer.made_topics import (
    MIN_INSYNC_REPLICAS,
    admin_types,
    at_most_brokers,
    create,
    made_patiently,
    replicas_of,
)

log = logging.getLogger("penstock.consumer")

TIMEOUT_S = 10.0
PATIENCE_S = 30.0
MAX_MESSAGE_BYTES = "max.message.bytes"


def ignored_topics(topics: Sequence[str], dead_letter_template: str) -> str:
    """The pattern of the dead letter topics, for a member that subscribes to a pattern: else it would find its own dead letters,
    fail at them again, and write those to yet another topic. ValueError when one of them is asked for by name.
    """
    hidden = "^" + dead_letter_template.replace(".", "\\.").replace("{topic}", ".*") + "$"
    for topic in topics:
        if not topic.startswith("^") and re.match(hidden, topic):
            raise ValueError(
                f"'{topic}' is a dead letter topic here: process it with a processor of its own, or choose another "
                "dead_letter_topic"
            )
    return hidden


def ensure_dead_letter_topic(settings: Mapping[str, Any], name: str, *, origin: str) -> None:
    """Makes the topic unless it is there: one partition, as many copies as `origin` has, and room for its largest record with our
    headers."""
    try:
        made_patiently(
            lambda: _make_unless_there(settings, name, origin), name, timeout_s=PATIENCE_S, log=log
        )
    except KafkaException as error:
        if error.args[0].code() in NO_ANSWER:
            raise Stopped(f"the cluster does not answer: {error.args[0].str()}") from error
        raise DeadLetterNotWritten(
            f"the dead letter topic {name} does not exist and cannot be created: {error.args[0].str()}"
        ) from error


def _make_unless_there(settings: Mapping[str, Any], name: str, origin: str) -> None:
    admin = admin_types.AdminClient({**settings}, logger=log.getChild("client"))
    if replicas_of(admin, name, timeout_s=TIMEOUT_S) is not None:
        return
    replicas = replicas_of(admin, origin, timeout_s=TIMEOUT_S)
    if replicas is not None:
        replicas = at_most_brokers(admin, replicas, timeout_s=TIMEOUT_S)
    # -1: as many as the cluster makes of topics by itself, where the origin is not there yet.
    wanted = admin_types.NewTopic(name, 1, replicas or -1, config=_configs(admin, origin, replicas))
    create(admin, wanted, timeout_s=TIMEOUT_S)
    log.info("created the dead letter topic %s", name)


def _configs(admin: Any, origin: str, replicas: int | None) -> dict[str, str]:
    resource = admin_types.ConfigResource(admin_types.ResourceType.TOPIC, origin)
    try:
        found = admin.describe_configs([resource], request_timeout=TIMEOUT_S)[resource].result(TIMEOUT_S)
        configs = {MAX_MESSAGE_BYTES: str(int(found[MAX_MESSAGE_BYTES].value) + HEADERS_MAX_BYTES)}
        if replicas is not None:
            in_sync = min(int(found[MIN_INSYNC_REPLICAS].value), replicas)
            configs[MIN_INSYNC_REPLICAS] = str(in_sync)
        return configs
    except (KafkaException, KeyError):
        # Not there yet, or not for us to see: then the cluster's default must do.
        return {}
