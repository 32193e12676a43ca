"""The dead letter topic: there before it is needed, so that nobody learns in an emergency that it cannot be made."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka.admin
from confluent_kafka import KafkaError, KafkaException

from penstock.consumer.dead_letters import HEADERS_MAX_BYTES
from penstock.consumer.failures import DeadLetterNotWritten, Stopped

log = logging.getLogger("penstock.consumer")

TIMEOUT_S = 30.0
MAX_MESSAGE_BYTES = "max.message.bytes"
# Of confluent_kafka.admin, whose names are not declared as exported for type checkers.
admin_types: Any = confluent_kafka.admin


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
    """Makes the topic unless it is there: one partition, and room for the largest record of `origin` with our headers."""
    admin = admin_types.AdminClient({**settings}, logger=log.getChild("client"))
    try:
        if _is_there(admin, name):
            return
        # -1: as many replicas as the cluster makes of topics by itself.
        wanted = admin_types.NewTopic(name, 1, -1, config=_configs(admin, origin))
        admin.create_topics([wanted], request_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)
        log.info("made the dead letter topic %s", name)
    except KafkaException as error:
        code = error.args[0].code()
        if code in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN):
            raise Stopped(f"the cluster does not answer: {error.args[0].str()}") from error
        if code != KafkaError.TOPIC_ALREADY_EXISTS:
            raise DeadLetterNotWritten(
                f"the dead letter topic {name} is not there and cannot be made: {error.args[0].str()}"
            ) from error


def _is_there(admin: Any, name: str) -> bool:
    # Described, not looked up in the metadata: that would make a topic where the cluster makes them by itself.
    described = admin.describe_topics(confluent_kafka.TopicCollection([name]), request_timeout=TIMEOUT_S)
    try:
        described[name].result(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return False
        raise
    return True


def _configs(admin: Any, origin: str) -> dict[str, str]:
    resource = admin_types.ConfigResource(admin_types.ResourceType.TOPIC, origin)
    try:
        found = admin.describe_configs([resource], request_timeout=TIMEOUT_S)[resource].result(TIMEOUT_S)
        return {MAX_MESSAGE_BYTES: str(int(found[MAX_MESSAGE_BYTES].value) + HEADERS_MAX_BYTES)}
    except (KafkaException, KeyError):
        # Not there yet, or not for us to see: then the cluster's default must do.
        return {}
