"""A field of ours in DescribeLogDirs must not disturb Apache Kafka's own client."""

import json

from simulation.apache.resident_tools import resident_tool
from tests.conftest import StartBroker
from tests.log.test_compaction import COMPACTED, compactions, create, produce, wait_for
from tests.tools.conftest import TOOL_TIMEOUT_S, TOOLS


def test_the_log_directories_of_a_compacted_topic_are_read_as_ever(start_broker: StartBroker) -> None:
    broker = start_broker(options={"log.cleaner.backoff.ms": "50"})
    create(broker, "prices", *COMPACTED, "segment.ms=200")
    produce(broker, "prices", *(f"k{number % 3},{number}" for number in range(30)))

    def is_compacted() -> bool:
        produce(broker, "prices", "k0,last")
        return bool(compactions(broker, "prices"))

    wait_for(is_compacted, "a compaction")
    done = resident_tool(
        f"{TOOLS}.LogDirsCommand",
        *("--bootstrap-server", broker.bootstrap, "--describe"),
        timeout_s=TOOL_TIMEOUT_S,
    )
    (found,) = json.loads(done.stdout.splitlines()[-1])["brokers"]
    sizes = {part["partition"]: part["size"] for part in found["logDirs"][0]["partitions"]}
    assert sizes["prices-0"] > 0
