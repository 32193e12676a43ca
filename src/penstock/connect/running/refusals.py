"""What is refused, with the status and the text that Kafka Connect answers."""

from __future__ import annotations


class Refusal(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NotLeader(Exception):
    """Another worker leads: it shall be asked."""


def bad_request(message: str) -> Refusal:
    return Refusal(400, message)


def not_found(message: str) -> Refusal:
    return Refusal(404, message)


def conflict(message: str) -> Refusal:
    return Refusal(409, message)


def no_connector(name: str) -> Refusal:
    return not_found(f"Connector {name} not found")


def failed(message: str) -> Refusal:
    return Refusal(500, message)


def not_stopped(name: str) -> Refusal:
    return bad_request(
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
        f"connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
    )
