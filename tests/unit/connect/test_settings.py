"""The table of what a connector can be configured with."""

from __future__ import annotations

import pytest

from penstock.connect import InvalidConfig, Kind, Setting, Settings
from penstock.connect.settings import HIDDEN, at_least

SETTINGS = Settings(
    Setting("topic", Kind.STRING, "Where records go."),
    Setting("batch.size", Kind.INT, "How many at a time.", default=2000, check=at_least(1)),
    Setting("password", Kind.PASSWORD, "Of the login.", default=None),
    Setting(
        "mode", Kind.STRING, "How.", default="bulk", recommended=lambda values: ["bulk", values["topic"]]
    ),
)


def test_values_are_parsed_and_defaults_filled_in() -> None:
    assert SETTINGS.parse({"topic": "t", "batch.size": " 5 ", "other": "x"}) == {
        "topic": "t",
        "batch.size": 5,
        "password": None,
        "mode": "bulk",
    }


def test_refusals_have_kafka_s_words() -> None:
    with pytest.raises(
        InvalidConfig, match='Missing required configuration "topic" which has no default value'
    ):
        SETTINGS.parse({})
    with pytest.raises(
        InvalidConfig, match=r"Invalid value x for configuration batch.size: Not a number of type INT"
    ):
        SETTINGS.parse({"topic": "t", "batch.size": "x"})


def test_all_mistakes_are_told_each_at_its_setting() -> None:
    found = {one.name: one for one in SETTINGS.validate({"batch.size": "0"})}
    assert len(found["topic"].errors) == 1
    assert found["batch.size"].errors == [
        "Invalid value 0 for configuration batch.size: Value must be at least 1"
    ]
    assert found["password"].errors == []
    assert found["mode"].recommended == ["bulk", None]


def test_a_secret_is_not_shown() -> None:
    assert SETTINGS["password"].shown("1234") == HIDDEN
    assert SETTINGS["batch.size"].shown(5) == "5"
