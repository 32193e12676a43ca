"""What librdkafka tells beside the answers: what ends a tool, what passes by itself, and what is worth a line."""

from typing import Any

from penstock.cli.error_names import detail
from penstock.cli.failures import Unreachable
from penstock.cli.kafka import tool


class ClientErrors:
    """For a client's `error_cb`. A line is told once, however often it comes."""

    def __init__(self) -> None:
        self._fatal: str | None = None
        self._told: set[str] = set()

    def __call__(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        code = error.code()
        if code in (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._FATAL):
            self._fatal = f"the broker does not let us in: {error.str()}"
        elif code not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._PARTITION_EOF):
            self.tell(f"WARN {reason(error)}")

    def tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            tool.complain(line)

    @property
    def is_fatal(self) -> bool:
        return self._fatal is not None

    def check(self) -> None:
        """Unreachable when there is no use in going on."""
        if self._fatal is not None:
            raise Unreachable(self._fatal)


def reason(error: Any) -> str:
    """A KafkaError in Kafka's words where the broker said it, in librdkafka's where the client did."""
    code, text = error.code(), str(error.str())
    return detail(code) if code > 0 and text.startswith("Broker: ") else text.removeprefix("Local: ")
