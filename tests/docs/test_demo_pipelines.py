"""The demo's pipeline as a program of penstock.streams and as SQL: the demo's own check says that they give what Spark's gives.

One broker and one Spark, that of the SQL server; the program runs in threads of this process.
"""

from __future__ import annotations

import io
import random
import re
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from rich.console import Console

from examples.demo import other_pipelines, topics, verify
from examples.demo.__main__ import SEED, WORKERS
from examples.demo.day import Upload, uploads
from examples.demo.feed import Feed
from examples.demo.other_pipelines import SQL, STREAMS
from examples.demo.population import Population, population
from examples.demo.show import GROUPS, Screen
from examples.demo.way import Way
from penstock.admin import Cluster
from penstock.spark.tasks import ThreadLauncher
from penstock.testing.penstock_broker import PenstockBroker
from tests.docs.pages import ROOT

MEASUREMENTS = 2000
ROWS = 72


@pytest.fixture(scope="module")
def day() -> tuple[Population, list[Upload]]:
    chance = random.Random(SEED)
    people = population(WORKERS, chance)
    return people, list(uploads(MEASUREMENTS, people, chance))


@pytest.mark.timeout(360)
@pytest.mark.parametrize("pipeline", [STREAMS, SQL])
def test_another_form_of_the_pipeline_gives_the_same_result(
    broker: PenstockBroker, tmp_path: Path, day: tuple[Population, list[Upload]], pipeline: str
) -> None:
    people, sent = day
    way, screen = Way(broker.bootstrap), Screen(Console(file=io.StringIO()))
    topics.create_topics(way)
    try:
        with Feed(way) as feed:
            feed.send_workers(people)
            with running(pipeline, way, tmp_path):
                other_pipelines.stream(pipeline, way, feed, sent, screen)
                with Cluster(broker.bootstrap) as cluster:
                    assert GROUPS[pipeline] in {each.group_id for each in cluster.groups.list()}
        outcome = verify.check(way, sent)
        assert outcome.problems == []
        assert len(outcome.summary) == ROWS
        assert set(outcome.refused) == {"NotJson", "MissingField", "OutOfRange", "UnknownWorker"}
        assert outcome.too_late > 0
    finally:
        with Cluster(broker.bootstrap) as cluster:  # the next one begins with empty topics
            for topic in topics.TOPICS:
                cluster.topics.delete(topic)


def test_what_the_tutorial_shows_of_each_form_is_in_its_file() -> None:
    page = (ROOT / "docs/tutorials/the-demo.md").read_text()
    forms = re.findall(r"\(../../(examples/demo/[a-z_]+\.(?:py|sql))\):\n\n```\w+\n(.*?)```", page, re.DOTALL)
    assert [name.rpartition("/")[2] for name, _ in forms] == [
        "pipeline.py", "streams_pipeline.py", "pipeline.sql",
    ]  # fmt: skip
    for name, shown in forms:
        assert " ".join(shown.split()) in " ".join((ROOT / name).read_text().split()), name


def running(pipeline: str, way: Way, directory: Path) -> AbstractContextManager[None]:
    if pipeline == SQL:
        return other_pipelines.running_sql(way, directory)
    return other_pipelines.running_streams(way, {"launcher": ThreadLauncher()})
