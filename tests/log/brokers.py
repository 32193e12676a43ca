"""A broker with several log directories, and requests about them."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.records.build import build_batch
from penstock.testing.penstock_broker import READY_LINE
from penstock.testing.processes import RunningProcess, free_port, start_process
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResult
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.raw_client import RawClient

NOW_MS = 1_700_000_000_000


class DirectoriesBroker:
    """As `PenstockBroker`, with the directories of the test's choice."""

    def __init__(
        self,
        working: Path,
        directories: Sequence[Path],
        *,
        options: Mapping[str, str] | None = None,
        wait_until_ready: bool = True,
    ) -> None:
        self.port = free_port()
        data = ",".join(str(path) for path in directories)
        command = [sys.executable, "-m", "penstock", "broker", "--port", str(self.port), "--data", data]
        for name, value in (options or {}).items():
            command += ["--set", f"{name}={value}"]
        self.process: RunningProcess = start_process(
            command, name="Penstock", log_path=working / "penstock.log"
        )
        if wait_until_ready:
            self.process.wait_for_line(READY_LINE, timeout_s=15.0)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


def send(client: RawClient, topic: str, index: int, value: bytes = b"v", *, timestamp: int = NOW_MS) -> int:
    """The error code of one record."""
    batch = bytes(build_batch([(None, value, (), timestamp)]))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])
    response = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 12)
    return int(response.responses[0].partition_responses[0].error_code)


def fetch_error(client: RawClient, topic: str, index: int, offset: int = 0) -> int:
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    return int(client.ask(request, 12).responses[0].partitions[0].error_code)


def list_offset(client: RawClient, topic: str, index: int, time: int = -2) -> tuple[int, int]:
    """(error code, offset)"""
    wanted = ListOffsetsPartition(partition_index=index, timestamp=time)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    found = client.ask(request, 7).topics[0].partitions[0]
    return found.error_code, found.offset


def metadata_of(client: RawClient, topic: str) -> list[MetadataResponsePartition]:
    response = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)
    return list(response.topics[0].partitions)


def log_dirs(client: RawClient) -> dict[str, DescribeLogDirsResult]:
    return {found.log_dir: found for found in client.ask(DescribeLogDirsRequest(topics=None), 4).results}


def homes(client: RawClient, topic: str) -> dict[int, str]:
    """Where each partition of a topic is."""
    return {
        partition.partition_index: path
        for path, found in log_dirs(client).items()
        for held in found.topics
        if held.name == topic
        for partition in held.partitions
        if not partition.is_future_key
    }
