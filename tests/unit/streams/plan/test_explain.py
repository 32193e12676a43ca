"""A plan tells what it does, as text and as a drawing."""

from __future__ import annotations

from penstock.streams.kernel.description import describe
from penstock.streams.plan.explain import as_drawing, as_text
from penstock.streams.plan.nodes import STREAM
from penstock.streams.plan.types import BIGINT, STRING
from tests.unit.streams.kernel.plans import (
    COUNT,
    aggregate,
    by,
    hopping,
    over,
    read,
    schema,
    through,
    where,
    write,
)

PLAN = write(
    aggregate(
        through(
            by(where(read("clicks", STREAM, schema(("PAGE", STRING), ("V", BIGINT))), over("V", 3)), "PAGE")
        ),
        COUNT,
        window=hopping(60_000, 20_000, grace_ms=5),
    ),
    "visits",
)


def test_the_text_has_each_step_above_those_it_reads() -> None:
    lines = as_text(PLAN).splitlines()
    assert [line.split("|")[0].strip() for line in lines] == [
        "> [ WRITE ]",
        "> [ AGGREGATE ]",
        "> [ REPARTITION ]",
        "> [ SELECT_KEY ]",
        "> [ FILTER ]",
        "> [ READ ]",
    ]
    assert lines[0].endswith(
        "Schema: `PAGE_KEY` STRING KEY, `N` BIGINT | write-visits: topic visits, key JSON, value JSON"
    )
    assert (
        "COUNT(1); HOPPING (SIZE 60000 MILLISECONDS, ADVANCE BY 20000 MILLISECONDS, GRACE PERIOD 5 MILLISECONDS)"
        in lines[1]
    )
    assert "through through-repartition, key JSON" in lines[2]
    assert lines[3].endswith("by: by PAGE")
    assert lines[4].startswith("\t\t" * 4)
    assert lines[4].endswith("where (V > 3)")


def test_the_drawing_has_topics_steps_and_tables() -> None:
    drawing = as_drawing(PLAN)
    assert drawing.startswith("flowchart TD\n")
    assert 'tn0[("clicks")] --> n0' in drawing
    assert 'n2 --> tn3[("through-repartition")] --> n3' in drawing
    assert 'n5[["<b>WRITE</b>' in drawing
    assert 'n5 --> tn5[("visits")]' in drawing


def test_the_topology_is_told_as_kafka_streams_tells_it() -> None:
    assert describe(PLAN) == (
        """Topologies:
   Sub-topology: 0
    Source: read-clicks (topics: [clicks])
      --> filter
    Processor: filter (stores: [])
      --> by
      <-- read-clicks
    Processor: by (stores: [])
      --> through-sink
      <-- filter
    Sink: through-sink (topic: through-repartition)
      <-- by

   Sub-topology: 1
    Source: through (topics: [through-repartition])
      --> aggregate
    Processor: aggregate (stores: [aggregate])
      --> write-visits
      <-- through
    Sink: write-visits (topic: visits)
      <-- aggregate

"""
    )
