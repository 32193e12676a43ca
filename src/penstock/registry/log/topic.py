"""The topic is there, has one partition, and is compacted; where it is not there it is made."""

from __future__ import annotations

import logging
import time
from typing import Final

from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import UserError
from penstock.client.patience import Patience
from penstock.model.errors import RETRIABLE, ErrorCode
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

log = logging.getLogger("penstock.registry")

TOPIC_RESOURCE: Final = 2
CREATE_TIMEOUT_MS: Final = 30_000


def ensure_topic(
    connection: Connection, name: str, *, replication_factor: int, timeout_s: float, skip_check: bool = False
) -> str | None:
    """The id of the cluster. UserError for a topic that cannot be used, which stays as it is."""
    deadline_s = time.monotonic() + timeout_s
    with ClusterClient(connection, timeout_s=timeout_s) as client:
        described = client.metadata([name])
        topic = next(iter(described.topics), None)
        if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            _create(client, name, min(replication_factor, len(described.brokers)), replication_factor)
        patience = Patience(max(0.0, deadline_s - time.monotonic()))
        while True:
            described = client.metadata([name])
            topic = next(iter(described.topics), None)
            if topic is not None and not topic.error_code:
                break
            if not patience.pause():
                code = topic.error_code if topic is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                raise refused(code, f"the topic {name} cannot be used")
        if not skip_check:
            if len(topic.partitions) != 1:
                raise UserError(
                    f"kafkastore.topic: {name} has {len(topic.partitions)} partitions, and must have one: "
                    "name another topic, or make it anew with one partition"
                )
            _check_policy(client, name)
        return described.cluster_id


def _create(client: ClusterClient, name: str, copies: int, wanted: int) -> None:
    if copies < wanted:
        log.warning(
            "The topic %s gets a replication factor of %d, not %d: there are no more brokers",
            name,
            copies,
            wanted,
        )
    topic = CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=copies,
        configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")],
    )
    answer = client.ask_controller(
        CreateTopicsRequest(topics=[topic], timeout_ms=CREATE_TIMEOUT_MS),
        CreateTopicsResponse,
        codes=lambda answered: [one.error_code for one in answered.topics],
    )
    for result in answer.topics:
        if (
            result.error_code not in (0, ErrorCode.TOPIC_ALREADY_EXISTS)
            and result.error_code not in RETRIABLE
        ):
            raise refused(result.error_code, result.error_message)


def _check_policy(client: ClusterClient, name: str) -> None:
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=["cleanup.policy"]
    )
    answer = client.ask(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)
    for result in answer.results:
        if result.error_code:
            log.warning("The configs of the topic %s cannot be read: is it compacted?", name)
            return
        for config in result.configs:
            if config.name == "cleanup.policy" and (config.value or "").strip() != "compact":
                raise UserError(
                    f"kafkastore.topic: {name} has cleanup.policy={config.value}, so that its schemas would be deleted "
                    f"after a while: penstock configs set --topic {name} cleanup.policy=compact"
                )
