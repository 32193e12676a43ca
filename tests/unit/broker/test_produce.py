"""What the Produce handler refuses before anything is stored."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.handlers.produce import Produce
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.options import LogOptions
from penstock.wire.produce import ProduceRequest


@pytest.mark.parametrize(
    ("client_id", "code"),
    [("console-producer", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", ErrorCode.NONE)],
)
def test_clients_do_not_write_to_internal_topics(tmp_path: Path, client_id: str, code: ErrorCode) -> None:
    placed = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
    partitions = HeldPartitions(OsDisk(), [str(tmp_path)], SystemClock(), broker_id=1)
    topic = Topic("__consumer_offsets", topic_id=bytes(15) + b"1", partitions=[placed])
    for _ in partitions.open_topic(topic, LogOptions()):
        pass
    batch = memoryview(build_batch([(b"key", b"value", (), 1_700_000_000_000)]))
    node: Any = SimpleNamespace(partitions=partitions, is_proven=lambda: True)
    call: Any = SimpleNamespace(client_id=client_id)
    request = ProduceRequest(None, -1, 1000, [(topic.name, [(0, batch)])])
    produce = Produce(node, call, request)
    produce.append(request.topics, {})
    assert produce.results[0][:2] == (0, code)
    partitions.release()
