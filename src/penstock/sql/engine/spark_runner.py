"""Persistent queries as long tasks of one Spark session.

The session is started in the background with the server, because it takes seconds; the first query waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.client.errors import UserError
from penstock.spark.tasks.states import JobState
from penstock.sql.engine.options import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    REGISTRY_URL,
    STREAMS,
    SqlOptions,
    of_streams,
)
from penstock.sql.engine.state import PersistentQuery, QueryError, QueryState
from penstock.streams.functions.scope import in_scope
from penstock.streams.running import topics
from penstock.streams.running.options import run_options
from penstock.streams.running.query import RunningQuery
from penstock.streams.schema_lookup import ClientLookup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock.sql")

SESSION_TIMEOUT_S: Final = 120.0
LOCAL: Final = "local"
STATES: Final = {
    JobState.PAUSED: QueryState.PAUSED,
    JobState.RESTARTING: QueryState.ERROR,  # until it works again
    JobState.FAILED: QueryState.ERROR,
    JobState.STOPPED: QueryState.ERROR,
}


class OnSpark:
    """`queries.Running`."""

    def __init__(self, query: RunningQuery) -> None:
        self.query = query

    def state(self) -> str:
        return STATES.get(self.query.state, QueryState.RUNNING).value

    def errors(self) -> list[QueryError]:
        return [QueryError(f"{each.kind}: {each.message}", each.time_ms) for each in self.query.errors]

    def pause(self) -> None:
        self.query.pause()

    def resume(self) -> None:
        self.query.resume()

    def stop(self) -> None:
        self.query.stop()


class SparkRunner:
    def __init__(self, options: SqlOptions) -> None:
        self._options = options
        self._session: SparkSession | None = None
        self._failure: Exception | None = None
        self._is_ready = threading.Event()

    def prepare(self) -> None:
        threading.Thread(target=self._open, name="penstock-spark", daemon=True).start()

    def is_ready(self) -> bool:
        return self._is_ready.is_set()

    def wait_ready(self) -> None:
        self._is_ready.wait()

    def start(self, query: PersistentQuery) -> OnSpark:
        assert query.planned is not None
        url = self._options[REGISTRY_URL]
        registry = partial(ClientLookup, url, dict(self._options.registry)) if url else None
        with in_scope(query.planned.plan.functions):
            return self._started(query, registry)

    def _started(self, query: PersistentQuery, registry: Callable[[], ClientLookup] | None) -> OnSpark:
        assert query.planned is not None
        return OnSpark(
            RunningQuery.start(
                query.planned.plan,
                self._options.application_id(query.id),
                bootstrap=self._options.bootstrap,
                properties=self._properties(query),
                spark=self._ready(),
                parallelism=self._options["penstock.sql.tasks"],
                guarantee=self._guarantee(query),
                registry=registry,
                processing_log=self._options["ksql.logging.processing.topic.name"] or None,
                fails_on_bad_records=self._options["ksql.fail.on.deserialization.error"],
                query_id=query.id,
            )
        )

    def clean(self, query_id: str) -> None:
        application_id = self._options.application_id(query_id)
        options = run_options(application_id, self._options.bootstrap, dict(self._options.client))
        with topics.cluster_of(options) as cluster:
            topics.remove(cluster, application_id)

    def close(self) -> None:
        session = self._session
        if session is not None:
            session.stop()

    def _properties(self, query: PersistentQuery) -> dict[str, str]:
        """The clients', then what the server's file says of streams, then ALTER SYSTEM, then what came with the statement."""
        found = dict(self._options.client)
        found["auto.offset.reset"] = self._options["ksql.streams.auto.offset.reset"]
        if self._options["ksql.streams.commit.interval.ms"]:
            found["commit.interval.ms"] = str(self._options["ksql.streams.commit.interval.ms"])
        return found | of_streams(query.system) | of_streams(query.properties)

    def _guarantee(self, query: PersistentQuery) -> str:
        name = "processing.guarantee"
        said = of_streams(query.system) | of_streams(query.properties)
        chosen = said.get(name) or self._options[STREAMS + name]
        return AT_LEAST_ONCE if chosen == AT_LEAST_ONCE else EXACTLY_ONCE

    def _open(self) -> None:
        from penstock.spark.session import session

        master = self._options["penstock.sql.master"]
        given = {} if master in (LOCAL, "") else {"master": master}
        try:
            self._session = session("penstock-sql", long_tasks=True, **given)
            log.info("Spark is ready: %s", self._session.sparkContext.master)
        except Exception as error:
            log.exception("Spark could not be started")
            self._failure = error
        self._is_ready.set()

    def _ready(self) -> SparkSession:
        if not self._is_ready.wait(SESSION_TIMEOUT_S):
            raise UserError(f"Spark has not started within {SESSION_TIMEOUT_S:.0f} s")
        if self._session is None:
            raise UserError(f"Spark could not be started: {self._failure}")
        return self._session
