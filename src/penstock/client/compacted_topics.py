"""A topic in which a service keeps its state: it is there and compacted; where it is not there it is made."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
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

log = logging.getLogger("penstock.client")

TOPIC_RESOURCE: Final = 2
POLICY: Final = "cleanup.policy"
COMPACT: Final = "compact"
CREATE_TIMEOUT_MS: Final = 30_000


def ensure_topic(
    connection: Connection,
    name: str,
    *,
    option: str,
    replication_factor: int,
    timeout_s: float,
    partitions: int = 1,
    is_exact: bool = True,
    configs: Mapping[str, str] | None = None,
    skip_check: bool = False,
) -> str | None:
    """The id of the cluster. UserError, which names the `option` that names the topic, for one that cannot be used; it stays as
    it is. `is_exact`: one with another number of partitions cannot be used. -1 is the broker's default."""
    deadline_s = time.monotonic() + timeout_s
    with ClusterClient(connection, timeout_s=timeout_s) as client:
        described = client.metadata([name])
        topic = next(iter(described.topics), None)
        if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            copies = min(replication_factor, len(described.brokers))
            if copies < replication_factor:
                log.warning(
                    "The topic %s gets a replication factor of %d, not %d: there are no more brokers",
                    name, copies, replication_factor,
                )  # fmt: skip
            _create(client, name, partitions, copies, {**(configs or {}), POLICY: COMPACT})
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
            if is_exact and len(topic.partitions) != partitions:
                wanted = "one" if partitions == 1 else str(partitions)
                raise UserError(
                    f"{option}: {name} has {len(topic.partitions)} partitions, and must have {wanted}: "
                    f"name another topic, or make it anew with {wanted} partition{'s' if partitions > 1 else ''}"
                )
            _check_policy(client, name, option)
        return described.cluster_id


def _create(
    client: ClusterClient, name: str, partitions: int, copies: int, configs: Mapping[str, str]
) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=copies,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
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


def _check_policy(client: ClusterClient, name: str, option: str) -> None:
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=[POLICY]
    )
    answer = client.ask(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)
    for result in answer.results:
        if result.error_code:
            log.warning("The configs of the topic %s cannot be read: is it compacted?", name)
            return
        for config in result.configs:
            if config.name == POLICY and (config.value or "").strip() != COMPACT:
                raise UserError(
                    f"{option}: {name} has cleanup.policy={config.value}, so that what it keeps would be deleted "
                    f"after a while: penstock configs set --topic {name} cleanup.policy=compact"
                )
