"""What the SQL server tells Prometheus of itself: queries by state, sources, and who is being served.

How far a persistent query is behind is told by the brokers: it reads as a consumer group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from penstock.sql.engine.engine import PRINTS, Engine
from penstock.sql.engine.state import QueryState
from penstock.streams.plan.sources import SourceKind


class SqlNumbers:
    """A collector, asked at every scrape."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        engine = self._engine
        known = list(engine.state.queries.values())
        states = Counter(engine.queries.state_of(query) for query in known)
        queries = GaugeMetricFamily("penstock_sql_queries", "Persistent queries by state.", labels=["state"])
        for state in QueryState:
            queries.add_metric([str(state)], states[state])
        yield queries
        of_each = GaugeMetricFamily(
            "penstock_sql_query_info",
            "1 for each persistent query and the state that it is in.",
            labels=["query", "state", "sink"],
        )
        for query in known:
            of_each.add_metric([query.id, str(engine.queries.state_of(query)), query.sink], 1)
        yield of_each
        failures = GaugeMetricFamily(
            "penstock_sql_query_errors", "Failures of a query that the server remembers.", labels=["query"]
        )
        for query in known:
            failures.add_metric([query.id], len(engine.queries.errors_of(query)))
        yield failures
        kinds = Counter(source.kind for source in list(engine.state.sources.values()))
        sources = GaugeMetricFamily("penstock_sql_sources", "Streams and tables.", labels=["kind"])
        for kind in SourceKind:
            sources.add_metric([kind.value.lower()], kinds[kind])
        yield sources
        pushes = GaugeMetricFamily(
            "penstock_sql_open_queries", "Push queries and PRINT that clients read.", labels=["kind"]
        )
        prints = sum(id.startswith(PRINTS) for id in list(engine.open_pushes))
        pushes.add_metric(["print"], prints)
        pushes.add_metric(["push"], len(engine.open_pushes) - prints)
        yield pushes
