"""What every connector can be configured with, besides its own settings; names, defaults and order are Kafka Connect's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.settings import (
    A_NAME,
    HIGH,
    LONG_WIDTH,
    LOW,
    MEDIUM,
    MEDIUM_WIDTH,
    SHORT_WIDTH,
    Check,
    Kind,
    Setting,
    Settings,
    at_least,
    one_of,
)

NAME: Final = "name"
CLASS: Final = "connector.class"
VERSION: Final = "connector.plugin.version"
TASKS_MAX: Final = "tasks.max"
ENFORCE: Final = "tasks.max.enforce"
TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
TOPICS: Final = "topics"
REGEX: Final = "topics.regex"
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
EXACTLY_ONCE: Final = "exactly.once.support"
BOUNDARY: Final = "transaction.boundary"
OFFSETS_TOPIC: Final = "offsets.storage.topic"
CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")

COMMON, ERRORS, CREATION = "Common", "Error Handling", "Topic Creation"
ONCE, OFFSETS = "Exactly Once Support", "offsets.topic"


def _upper_or_lower(*allowed: str) -> Check:
    return one_of(*allowed, any_case=True)


def _row(
    name: str, kind: Kind, doc: str, group: str, width: str, display: str, importance: str, **more: Any
) -> Setting:
    return Setting(
        name, kind, doc, group=group, width=width, display_name=display, importance=importance, **more
    )


S, M, L = SHORT_WIDTH, MEDIUM_WIDTH, LONG_WIDTH

COMMON_SETTINGS: Final = Settings(
    _row(NAME, Kind.STRING, "The name of the connector: there is one of it.", COMMON, M, "Connector name", HIGH,
         check=A_NAME),
    _row(CLASS, Kind.STRING, "The class of the connector: its full name, or its simple name, with or without Connector at "
         "its end.", COMMON, L, "Connector class", HIGH),
    _row(VERSION, Kind.STRING, "The version of the connector.", COMMON, M, "Connector version", MEDIUM, default=None),
    _row(TASKS_MAX, Kind.INT, "How many tasks it may have.", COMMON, S, "Tasks max", HIGH, default=1, check=at_least(1)),
    _row(ENFORCE, Kind.BOOLEAN, "Whether a connector fails that makes more tasks than it may have.", COMMON, S,
         "Enforce tasks max", LOW, default=True),
    _row("key.converter", Kind.CLASS, "What is between keys and the bytes in topics; the worker's where nothing is said.", COMMON,
         S, "Key converter class", LOW, default=None),
    _row("key.converter.plugin.version", Kind.STRING, "The version of it.", COMMON, S, "Key converter version", LOW,
         default=None),
    _row("value.converter", Kind.CLASS, "What is between values and the bytes in topics; the worker's where nothing is said.",
         COMMON, S, "Value converter class", LOW, default=None),
    _row("value.converter.plugin.version", Kind.STRING, "The version of it.", COMMON, S, "Value converter version", LOW,
         default=None),
    _row("header.converter", Kind.CLASS, "What is between headers and their bytes; the worker's where nothing is said.", COMMON,
         S, "Header converter class", LOW, default=None),
    _row("header.converter.plugin.version", Kind.STRING, "The version of it.", COMMON, S, "Header converter version", LOW,
         default=None),
    _row(TRANSFORMS, Kind.LIST, "Names of transforms, in their order; each is configured by transforms.NAME.….", "Transforms",
         L, "Transforms", LOW, default=[]),
    _row(PREDICATES, Kind.LIST, "Names of predicates; each is configured by predicates.NAME.….", "Predicates", L, "Predicates",
         LOW, default=[]),
    _row("config.action.reload", Kind.STRING, "What is done when a value outside of the configuration changes.", COMMON, M,
         "Reload Action", LOW, default="restart", check=one_of("none", "restart")),
    _row("errors.retry.timeout", Kind.LONG, "For how many milliseconds what failed is tried again; 0: not at all, -1: without "
         "end.", ERRORS, M, "Retry Timeout for Errors", MEDIUM, default=0),
    _row("errors.retry.delay.max.ms", Kind.LONG, "The longest pause between two attempts.", ERRORS, M,
         "Maximum Delay Between Retries for Errors", MEDIUM, default=60_000),
    _row("errors.tolerance", Kind.STRING, "Whether bad records fail the task (none) or are left out (all).", ERRORS,
         S, "Error Tolerance", MEDIUM, default="none", check=one_of("none", "all")),
    _row("errors.log.enable", Kind.BOOLEAN, "Whether each failure is told in the log.", ERRORS, S, "Log Errors", MEDIUM,
         default=False),
    _row("errors.log.include.messages", Kind.BOOLEAN, "Whether the record is told there, too.", ERRORS, S,
         "Log Error Details", MEDIUM, default=False),
)  # fmt: skip

SOURCE_SETTINGS: Final = Settings(
    _row("topic.creation.groups", Kind.LIST, "Groups of topics that are made by rules of their own, topic.creation.NAME.….",
         CREATION, L, "Topic Creation Groups", LOW, default=[]),
    _row(EXACTLY_ONCE, Kind.STRING, "required: refused where the connector cannot write exactly once.", ONCE, S,
         "Exactly once support", MEDIUM, default="requested", check=_upper_or_lower("requested", "required")),
    _row(BOUNDARY, Kind.STRING, "Where transactions end: behind each poll, by time, or as the connector says.", ONCE, S,
         "Transaction Boundary", MEDIUM, default="poll", check=_upper_or_lower("poll", "interval", "connector")),
    _row("transaction.boundary.interval.ms", Kind.LONG, "How long a transaction lasts by time; that of offset commits where "
         "nothing is said.", ONCE, S, "Transaction boundary interval", LOW, default=None, check=at_least(0)),
    _row(OFFSETS_TOPIC, Kind.STRING, "A topic of its own for the offsets.", OFFSETS, L, "Offsets topic", LOW, default=None),
)  # fmt: skip

SINK_SETTINGS: Final = Settings(
    _row(TOPICS, Kind.LIST, "The topics that are read.", COMMON, L, "Topics", HIGH, default=[]),
    _row(REGEX, Kind.STRING, "A regular expression of the topics that are read.", COMMON, L, "Topics regex", HIGH, default=""),
    _row(DEAD_LETTERS, Kind.STRING, "The topic for records that cannot be used; none where nothing is said.", ERRORS, M,
         "Dead Letter Queue Topic Name", MEDIUM, default=""),
    _row("errors.deadletterqueue.topic.replication.factor", Kind.SHORT, "Copies of that topic when it is made.", ERRORS, M,
         "Dead Letter Queue Topic Replication Factor", MEDIUM, default=3),
    _row("errors.deadletterqueue.context.headers.enable", Kind.BOOLEAN, "Whether headers say where the record is from, and what "
         "is wrong.", ERRORS, M, "Enable Error Context Headers", MEDIUM, default=False),
)  # fmt: skip

ORDER: Final[Mapping[str, int]] = {
    **{setting.name: number for number, setting in enumerate(COMMON_SETTINGS, start=1) if setting.group != ERRORS},
    **{setting.name: number for number, setting in enumerate(
        (each for each in (*COMMON_SETTINGS, *SINK_SETTINGS) if each.group == ERRORS), start=1)},
    TOPICS: 4, REGEX: 4, "topic.creation.groups": 1, EXACTLY_ONCE: 2, BOUNDARY: 3, "transaction.boundary.interval.ms": 4,
    OFFSETS_TOPIC: 1,
}  # fmt: skip
"""Among those of its group."""


def settings_of(kind: str) -> Settings:
    """`kind` is source or sink."""
    return COMMON_SETTINGS | (SOURCE_SETTINGS if kind == "source" else SINK_SETTINGS)


def transform_settings(alias: str, *, is_predicate: bool) -> Settings:
    """Of a transform or predicate that a configuration names, besides its own."""
    family, kind = ("predicates", "Predicate") if is_predicate else ("transforms", "Transformation")
    prefix, group = f"{family}.{alias}.", f"{'Predicates' if is_predicate else 'Transforms'}: {alias}"
    return Settings(
        _row(prefix + "type", Kind.CLASS, "Its class.", group, L, f"{kind} type for {alias}", HIGH),
        _row(prefix + "plugin.version", Kind.STRING, "Its version.", group, L, f"{kind} version for {alias}", HIGH,
             default=None),
    )  # fmt: skip


CONDITION_SETTINGS: Final = Settings(
    Setting("predicate", Kind.STRING, "The predicate that says to which records it applies.", default=None),
    Setting("negate", Kind.BOOLEAN, "Whether it applies to all others.", default=False),
)
"""Of every transform, behind its prefix."""
