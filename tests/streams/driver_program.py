"""A program of a user: starts a count by key and waits. Run with: bootstrap, source, sink, application, launcher."""

from __future__ import annotations

import sys
import time

from penstock.spark.tasks import JobState, ProcessLauncher
from penstock.streams.running.query import RunningQuery
from tests.streams import plans


def main(bootstrap: str, source: str, sink: str, application: str, launcher: str) -> None:
    where: dict[str, object] = {"launcher": ProcessLauncher()}
    if launcher == "spark":
        import penstock.spark
        from tests.spark.conftest import SMALL_JVM

        where = {"spark": penstock.spark.session(application, long_tasks=True, **SMALL_JVM)}
    query = RunningQuery.start(
        plans.counted(source, sink),
        application,
        bootstrap=bootstrap,
        guarantee="exactly_once_v2",
        parallelism=2,
        **where,  # type: ignore[arg-type]
    )
    assert query.wait_until_running(60) == JobState.RUNNING, query.errors
    print("running", *(task.process_id for task in query.tasks), flush=True)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
