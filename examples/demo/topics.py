"""The topics of the demo."""

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from examples.demo.way import Way

WORKERS = "bioimpedancia.trabalhador"
MEASUREMENTS = "bioimpedancia.metrica"
UPLOADS = "bioimpedancia.lote"
LOG = "bioimpedancia.log"
SUMMARY = "bioimpedancia.resumo"
DEAD_LETTERS = f"{MEASUREMENTS}.dlq"

# Partitions, and what the topic has of its own. Of a worker only the newest record counts.
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    WORKERS: (2, {"cleanup.policy": "compact"}),
    MEASUREMENTS: (2, {}),
    UPLOADS: (1, {}),
    LOG: (1, {}),
    SUMMARY: (2, {}),
    DEAD_LETTERS: (1, {}),
}
TIMEOUT_S = 30.0


def create_topics(way: Way) -> None:
    # A client that pushes metrics may log about it in the middle of the screen.
    admin = AdminClient({**way.librdkafka, "enable.metrics.push": False})
    wanted = [NewTopic(name, partitions, 1, config=config) for name, (partitions, config) in TOPICS.items()]
    for created in admin.create_topics(wanted).values():
        created.result(TIMEOUT_S)
