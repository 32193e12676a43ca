"""The transactional ids of a connector's tasks, and how tasks of an earlier configuration are shut out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException

from penstock.connect.errors import ConnectError
from penstock.connect.tasks.clients import PRODUCER, make_producer, settings_of
from penstock.connect.tasks.settings import WorkerSettings
from penstock.connect.tasks.writing import TRANSACTION_TIMEOUT_MS

TIMEOUT_S = 30.0


def transactional_id(worker: WorkerSettings, connector: str, task: int) -> str:
    """As Kafka Connect names it."""
    return f"{worker.group_id}-{connector}-{task}"


def fence(worker: WorkerSettings, connector: str, config: Mapping[str, str], tasks: Iterable[int]) -> None:
    """Whoever still writes as one of these tasks cannot commit any more. For tasks that have no successor, since there are fewer
    than before: those that have one are fenced by it. ConnectError."""
    settings = settings_of(worker, config, PRODUCER) | {"message.timeout.ms": TRANSACTION_TIMEOUT_MS}
    settings["transaction.timeout.ms"] = TRANSACTION_TIMEOUT_MS
    for task in tasks:
        producer = make_producer({**settings, "transactional.id": transactional_id(worker, connector, task)})
        try:
            producer.init_transactions(TIMEOUT_S)
        except KafkaException as error:
            raise ConnectError(
                f"earlier tasks of {connector} cannot be fenced: {error.args[0].str()}"
            ) from error
