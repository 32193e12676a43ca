"""A coordinator that is found too late does not end the process of a group's member.

An assertion of librdkafka ends the process that it is in, so what looks at the group runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

from penstock.model.api_keys import ApiKey
from penstock.testing.penstock_broker import PenstockBroker
from simulation.liar.broker import LyingBroker
from simulation.liar.calls import Call

PATIENCE_S = 0.3
LOOKS_AT_THE_GROUP = """
import sys, time
from confluent_kafka import Consumer
from penstock.consumer import coverage

coverage.CALL_TIMEOUT_S = float(sys.argv[2])
settings = {"bootstrap.servers": sys.argv[1], "log_level": 0}
consumer = Consumer({**settings, "group.id": "group"})
group = coverage.Coverage(consumer, settings, "group", ["topic"], wait_s=0.0)
for _ in range(8):
    group.assigned()
    assert group.neglected() == []
consumer.close()
print("looked at the group")
"""


class FoundLate(LyingBroker):
    """Says who the coordinator is when nobody waits for it any more."""

    found = 0

    async def _answer(self, node_id: int, call: Call, behind: Any) -> bytes:
        if call.api_key == ApiKey.FIND_COORDINATOR:
            self.found += 1
            await asyncio.sleep(PATIENCE_S * (1 + 0.1 * (self.found % 4)))
        return await super()._answer(node_id, call, behind)


def test_a_coordinator_that_is_found_too_late_does_not_end_the_process(broker: PenstockBroker) -> None:
    with FoundLate(broker.port) as late:
        done = subprocess.run(
            [sys.executable, "-c", LOOKS_AT_THE_GROUP, late.bootstrap, str(PATIENCE_S)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert late.found
    assert (done.returncode, done.stdout) == (0, "looked at the group\n"), done.stderr
