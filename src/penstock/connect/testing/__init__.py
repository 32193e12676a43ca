"""For tests of connectors: their tasks run in the test's own process, without a broker.

    from penstock.connect.testing import SinkTest, SourceTest, mistakes_in

    with SourceTest(Numbers, {"topic": "numbers", "until": "10"}) as test:
        assert [record.value for record in test.poll_until(3)] == [0, 1, 2]
        test.restart()
        assert test.poll()[0].value == 3

The path: a configuration is checked as a worker checks it (`mistakes_in`); the connector is started and asked for the
configurations of its tasks; one task is made, gets its context, and is called by the test, call by call. Records go through the
transforms that the configuration names. `SourceTest` keeps offsets, and `SinkTest` topics with positions, so that a `restart`,
a `crash` and a `rebalance` give to the task what a worker would give.

Promised: the calls come in a worker's order, and what a task reports is treated as `errors.tolerance` says. Not there:
converters, producers, threads and pauses. `wait` returns at once, unless `real_waits` is asked for.
"""

from penstock.connect.testing.checking import mistakes_in
from penstock.connect.testing.sinks import SinkTest
from penstock.connect.testing.sources import SourceTest
from penstock.connect.testing.tasks import Report

__all__ = ["SourceTest", "SinkTest", "Report", "mistakes_in"]
