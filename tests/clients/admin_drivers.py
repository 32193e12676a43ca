"""The admin clients of the three libraries behind one small interface. A refusal is `Refused` with the broker's code."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

import aiokafka
import kafka
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka.admin import ConfigResource as PythonConfigResource
from kafka.errors import BrokerResponseError

from tests.clients.admin import admin_client
from tests.clients.aiokafka_driver import LoopThread
from tests.clients.driver import WAIT_S, Refused

Configs = Mapping[str, str]


class AdminDriver(Protocol):
    def create(self, name: str, *, partitions: int = 1, configs: Configs | None = None) -> None: ...

    def delete(self, name: str) -> None: ...

    def topics(self) -> dict[str, int]:
        """Names and numbers of partitions."""
        ...

    def grow(self, name: str, partitions: int) -> None: ...

    def configs(self, name: str) -> dict[str, str]: ...

    def set_configs(self, name: str, configs: Configs) -> None:
        """Sets these; whether the others are kept depends on the library."""
        ...

    def delete_records(self, name: str, before: int) -> int:
        """Of partition 0; the new earliest offset."""
        ...

    def cluster(self) -> tuple[str, set[int]]:
        """The cluster's id and its brokers' ids."""
        ...

    def close(self) -> None: ...


class ConfluentAdmin:
    def __init__(self, bootstrap: str) -> None:
        self._admin = admin_client(bootstrap)

    def _one(self, futures: dict[Any, Any]) -> Any:
        (future,) = futures.values()
        try:
            return future.result(WAIT_S)
        except KafkaException as error:
            raise Refused(error.args[0].code()) from None

    def create(self, name: str, *, partitions: int = 1, configs: Configs | None = None) -> None:
        self._one(self._admin.create_topics([NewTopic(name, partitions, 1, config=dict(configs or {}))]))

    def delete(self, name: str) -> None:
        self._one(self._admin.delete_topics([name]))

    def topics(self) -> dict[str, int]:
        listed = self._admin.list_topics(timeout=WAIT_S).topics
        return {name: len(topic.partitions) for name, topic in listed.items()}

    def grow(self, name: str, partitions: int) -> None:
        self._one(self._admin.create_partitions([NewPartitions(name, partitions)]))

    def configs(self, name: str) -> dict[str, str]:
        entries = self._one(self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)]))
        return {key: entry.value for key, entry in entries.items()}

    def set_configs(self, name: str, configs: Configs) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._one(self._admin.incremental_alter_configs([resource]))

    def delete_records(self, name: str, before: int) -> int:
        return int(self._one(self._admin.delete_records([TopicPartition(name, 0, before)])).low_watermark)

    def cluster(self) -> tuple[str, set[int]]:
        described = self._admin.describe_cluster().result(WAIT_S)
        return described.cluster_id, {node.id for node in described.nodes}

    def close(self) -> None:
        pass


class KafkaPythonAdmin:
    def __init__(self, bootstrap: str) -> None:
        self.client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)

    def _do(self, method: str, *args: Any, **options: Any) -> Any:
        try:
            return getattr(self.client, method)(*args, **options)
        except BrokerResponseError as error:
            raise Refused(error.errno) from None

    def create(self, name: str, *, partitions: int = 1, configs: Configs | None = None) -> None:
        self._do("create_topics", {name: {"num_partitions": partitions, "configs": dict(configs or {})}})

    def delete(self, name: str) -> None:
        self._do("delete_topics", [name])

    def topics(self) -> dict[str, int]:
        return {topic["name"]: len(topic["partitions"]) for topic in self._do("describe_topics")}

    def grow(self, name: str, partitions: int) -> None:
        self._do("create_partitions", {name: partitions})

    def configs(self, name: str) -> dict[str, str]:
        described = self._do("describe_configs", [PythonConfigResource("TOPIC", name)], config_filter="all")
        return {key: entry["value"] for key, entry in described["topic"][name].items()}

    def set_configs(self, name: str, configs: Configs) -> None:
        resource = PythonConfigResource("TOPIC", name, dict(configs))
        result = self._do("alter_configs", [resource], raise_on_unknown=False)["topic"][name]
        if refusal := re.match(r"\[Error (\d+)\]", result):  # it raises nothing here, but says so in text
            raise Refused(int(refusal[1]))
        assert result == "OK"

    def delete_records(self, name: str, before: int) -> int:
        where = kafka.TopicPartition(name, 0)
        return int(self._do("delete_records", {where: before})[where]["low_watermark"])

    def cluster(self) -> tuple[str, set[int]]:
        described = self._do("describe_cluster")
        return described["cluster_id"], {broker["broker_id"] for broker in described["brokers"]}

    def close(self) -> None:
        self.client.close()


class AiokafkaAdmin:
    """It hands most answers back as they came, error codes included."""

    def __init__(self, bootstrap: str) -> None:
        self._loop = LoopThread()

        async def start() -> AIOKafkaAdminClient:
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await admin.start()
            return admin

        self._admin = self._loop.run(start())

    def _do(self, method: str, *args: Any) -> Any:
        try:
            return self._loop.run(getattr(self._admin, method)(*args))
        except AioKafkaError as error:
            raise Refused(error.errno) from None

    def create(self, name: str, *, partitions: int = 1, configs: Configs | None = None) -> None:
        topic = AioNewTopic(name, partitions, 1, topic_configs=dict(configs or {}))
        _check(self._do("create_topics", [topic]).topic_errors[0][1])

    def delete(self, name: str) -> None:
        _check(self._do("delete_topics", [name]).topic_error_codes[0][1])

    def topics(self) -> dict[str, int]:
        return {topic["topic"]: len(topic["partitions"]) for topic in self._do("describe_topics")}

    def grow(self, name: str, partitions: int) -> None:
        self._do("create_partitions", {name: AioNewPartitions(partitions)})

    def configs(self, name: str) -> dict[str, str]:
        (answer,) = self._do("describe_configs", [AioConfigResource(AioConfigResourceType.TOPIC, name)])
        code, _, _, _, entries = answer.resources[0][:5]
        _check(code)
        return {entry[0]: entry[1] for entry in entries}

    def set_configs(self, name: str, configs: Configs) -> None:
        resource = AioConfigResource(AioConfigResourceType.TOPIC, name, dict(configs))
        (answer,) = self._do("alter_configs", [resource])
        _check(answer.resources[0][0])

    def delete_records(self, name: str, before: int) -> int:
        where = aiokafka.TopicPartition(name, 0)
        return int(self._do("delete_records", {where: RecordsToDelete(before)})[where])

    def cluster(self) -> tuple[str, set[int]]:
        described = self._do("describe_cluster")
        return described["cluster_id"], {broker["node_id"] for broker in described["brokers"]}

    def close(self) -> None:
        self._loop.run(self._admin.close())
        self._loop.close()


def _check(code: int) -> None:
    if code:
        raise Refused(code)


ADMIN_DRIVERS = {"confluent": ConfluentAdmin, "aiokafka": AiokafkaAdmin, "kafka_python": KafkaPythonAdmin}
