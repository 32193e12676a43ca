"""Which worker runs which test file, when there are several workers.

Most tests wait: for sessions to end, leaders to move, clients to retry. Four of them at once keep two cores busy. But JVMs need a
core each, and two of Spark's at once starve all others. So files that start JVMs have lanes: the first worker has those
that share one Spark, the second those that start JVMs of their own, and the others never take them. Browsers take whole cores,
too: the third worker has their files, and the first two when nothing else is left. Files of long waits
come first and unit tests, which are short, last: no worker is left alone with a long file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler.loadfile import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

SHARED_SPARK, OWN_JVMS, BROWSERS, THE_REST = "shared Spark", "own JVMs", "browsers", "the rest"
# What each of the first workers takes, in this order; the others take the rest only.
LANES = (
    (SHARED_SPARK, OWN_JVMS, THE_REST, BROWSERS),
    (OWN_JVMS, THE_REST, SHARED_SPARK, BROWSERS),
    (BROWSERS, THE_REST),
)
OWN_JVM_FILES = (
    "tests/spark/test_cluster.py",
    "tests/spark/test_connect.py",
    "tests/spark/test_under_fire.py",
    "tests/spark/test_interrupts.py",
    "tests/streams/test_differential.py",
    "tests/streams/test_killed_drivers.py",
    "tests/streams/test_spark_cluster.py",
    "tests/docs/test_demo.py",
    "tests/docs/test_demo_pipelines.py",
    "tests/docs/test_sql_page.py",
    "tests/docs/test_stack_page.py",
    "tests/stack/test_stack_from_file.py",
    "tests/stack/test_compose.py",
    "tests/docs/test_connect_page.py",
    "tests/docs/test_connectors_pages.py",
    "tests/security/test_gssapi.py",
    "tests/security/test_oauthbearer.py",
    "tests/tools/",
    "tests/registry/test_apache_kafka.py",
    "tests/sql/",
    "tests/security/test_guards_beside_kafka.py",
    "tests/console/test_sql_page.py",
    "tests/connect/test_converters_beside_kafka.py",
    "tests/connect/test_transforms_beside_kafka.py",
    "tests/connect/test_group.py",
    "tests/connect/test_up.py",
    "tests/connect/test_spark_connectors.py",
    "tests/connect/test_change_capture.py",
    "tests/connect/test_elasticsearch_sink.py",
    "tests/mirror/test_beside_kafka.py",
    "tests/mixed/",
    "tests/advice/test_beside_kafka.py",
)
SHARED_SPARK_FILES = ("tests/spark/",)
BROWSER_FILES = ("tests/console/", "tests/docs/test_console")
LAST_FOLDERS = ("tests/log/", "tests/liar/", "tests/simulation/", "tests/unit/")


class LaneScheduling(LoadFileScheduling):  # type: ignore[misc]
    def remove_node(self, node: WorkerController) -> str | None:
        """The test that crashed the worker has failed. The others of its file go to another worker; xdist would send it along,
        and lose worker after worker."""
        workload = self.assigned_work.pop(node)
        crashed = None
        for tests in workload.values():
            crashed = next((name for name, is_done in tests.items() if not is_done), None)
            if crashed is not None:
                tests[crashed] = True
                break
        self.workqueue.update({scope: tests for scope, tests in workload.items() if not all(tests.values())})
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # it replaces one that crashed, and still collects; it is asked again when it has
        scope = self._next_for(node)
        if scope is None:
            node.shutdown()  # what is left is not for it
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str | None:
        # By place and not by name: one that takes over from a worker that crashed takes over its lane.
        place = [each for each in self.nodes if not each.shutting_down].index(node)
        for kind in LANES[place] if place < len(LANES) else (THE_REST,):
            waiting = [scope for scope in self.workqueue if kind_of(scope) == kind]
            if waiting:
                return min(waiting, key=rank)
        return None


def kind_of(path: str) -> str:
    if path.startswith(OWN_JVM_FILES):
        return OWN_JVMS
    if path.startswith(SHARED_SPARK_FILES):
        return SHARED_SPARK
    return BROWSERS if path.startswith(BROWSER_FILES) else THE_REST


def rank(path: str) -> int:
    """Lower is earlier; files of one rank keep their order."""
    return next((place for place, folder in enumerate(LAST_FOLDERS, start=1) if path.startswith(folder)), 0)
