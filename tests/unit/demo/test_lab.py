"""The stack of examples/lab has what the demo needs, and an editor takes it."""

from __future__ import annotations

import jsonschema_rs
import yaml

from examples.demo import topics
from examples.demo.lab import FILE
from penstock.stack.description.json_schema import json_schema
from penstock.stack.description.reading import read_description
from penstock.stack.services import SERVICES


def test_its_topics_are_those_of_the_demo() -> None:
    found = {
        one.name: (one.partitions, dict(one.configs))
        for one in read_description(FILE, SERVICES).contents.topics
    }
    assert topics.TOPICS.items() <= found.items()
    assert found.keys() - topics.TOPICS.keys() == {"bioimpedancia.estacao"}


def test_it_has_every_service_but_spark_itself() -> None:
    asked = {name for name, one in read_description(FILE, SERVICES).wish.services.items() if one.count}
    assert asked == {service.name for service in SERVICES} - {"spark", "spark-worker"}


def test_editors_find_nothing_wrong_with_it() -> None:
    validator = jsonschema_rs.validator_for(json_schema(SERVICES))
    assert [error.message for error in validator.iter_errors(yaml.safe_load(FILE.read_text()))] == []
