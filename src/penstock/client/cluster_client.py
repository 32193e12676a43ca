"""A few questions to a whole cluster: to any broker, to one of them, to all, or to a coordinator.

What a broker only says for the moment ("I am loading", "it is not me") is asked again until the deadline. Connections
are kept until the end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import NamedTuple, TypeVar

from penstock.client.clients import REQUEST_TIMEOUT_S, Connection
from penstock.client.error_names import refused
from penstock.client.errors import Unreachable
from penstock.client.patience import Patience
from penstock.client.wire_client import WireClient
from penstock.model.endpoints import Address
from penstock.model.errors import RETRIABLE, ErrorCode
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)
log = logging.getLogger("penstock.client")

GROUP, TRANSACTION = 0, 1
SILENCE_S = 3.0
# A topic that is not there is an answer to those who ask a coordinator, and not waited for.
RETRIABLE_ANSWERS = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class BrokerNode(NamedTuple):
    node_id: int
    host: str
    port: int


class ClusterClient:
    """Use as a context. `timeout_s` bounds how long one question is asked again."""

    def __init__(self, connection: Connection, *, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        try:
            self._bootstrap = connection.wire()
        except Unreachable:
            connection.check()  # it has a better word for what is wrong
            raise
        self._brokers: dict[int, WireClient] = {}
        self._coordinators: dict[tuple[int, str], BrokerNode] = {}

    def __enter__(self) -> ClusterClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for client in (self._bootstrap, *self._brokers.values()):
            client.close()

    def ask(self, request: Message, answer: type[R], *, timeout_s: float | None = None) -> R:
        return self._bootstrap.ask(request, answer, timeout_s=timeout_s)

    def metadata(self, topics: Iterable[str] | None = None) -> MetadataResponse:
        """Of these topics, or of all."""
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        return self.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), MetadataResponse)

    def nodes(self) -> list[BrokerNode]:
        return [BrokerNode(one.node_id, one.host, one.port) for one in self.metadata([]).brokers]

    def ask_node(
        self,
        node: BrokerNode,
        request: Message,
        answer: type[R],
        *,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> R:
        if node.node_id not in self._brokers:
            self._brokers[node.node_id] = self._connection.wire(Address(node.host, node.port))
        client = self._brokers[node.node_id]
        try:
            return client.ask(request, answer, max_version=max_version, timeout_s=timeout_s)
        except Unreachable:
            # A connection on which an answer is overdue, or that is closed, is of no use to the next question.
            del self._brokers[node.node_id]
            client.close()
            raise

    def coordinator(self, kind: int, key: str) -> BrokerNode:
        """`kind` is GROUP or TRANSACTION."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        patience = Patience(self._timeout_s)
        while True:
            answer = self.ask(request, FindCoordinatorResponse)
            # Up to version 3 there is one answer; from version 4 on a list of them.
            found = answer.coordinators[0] if answer.coordinators else answer
            if not found.error_code:
                node = BrokerNode(found.node_id, found.host, found.port)
                self._coordinators[kind, key] = node
                return node
            if found.error_code not in RETRIABLE_ANSWERS or not patience.pause():
                raise refused(found.error_code, found.error_message)

    def ask_coordinator(
        self,
        kind: int,
        key: str,
        request: Message,
        answer: type[R],
        *,
        codes: Callable[[R], Iterable[int]],
        max_version: int | None = None,
    ) -> R:
        """`codes` takes the error codes out of an answer, so that retriable ones are asked again."""
        patience = Patience(self._timeout_s)
        while True:
            node = self.coordinator(kind, key)
            answered = self.ask_node(node, request, answer, max_version=max_version)
            if RETRIABLE_ANSWERS.isdisjoint(codes(answered)) or not patience.pause():
                return answered
            self._coordinators.pop((kind, key), None)

    def ask_controller(
        self,
        request: Message,
        answer: type[R],
        *,
        codes: Callable[[R], Iterable[int]],
        timeout_s: float | None = None,
        patience_s: float | None = None,
    ) -> R:
        """What only the controller answers. `timeout_s` bounds one answer, for those that take their time; `patience_s`
        how long a controller is waited for. One that died is named until its session with ZooKeeper is over."""
        started_s = time.monotonic()
        patience = Patience(self._timeout_s if patience_s is None else patience_s)
        has_told = False
        while True:
            failure = Unreachable("the cluster has no controller at the moment: try again in a few seconds.")
            described = self.metadata([])
            for one in described.brokers:
                if one.node_id == described.controller_id:
                    node = BrokerNode(one.node_id, one.host, one.port)
                    try:
                        answered = self.ask_node(node, request, answer, timeout_s=timeout_s)
                    except Unreachable as error:
                        failure = Unreachable(f"{error} (broker {node.node_id}, the controller)")
                        break
                    if ErrorCode.NOT_CONTROLLER not in set(codes(answered)):
                        return answered
                    break
            if not patience.pause():
                raise failure
            if not has_told and time.monotonic() - started_s > SILENCE_S:
                has_told = True
                log.warning("waiting for a controller that answers: %s", failure)

    def leaders(self, topics: Iterable[str]) -> tuple[dict[int, BrokerNode], MetadataResponse]:
        """The brokers by id, and what is known of the topics."""
        described = self.metadata(sorted(set(topics)))
        nodes = {one.node_id: BrokerNode(one.node_id, one.host, one.port) for one in described.brokers}
        return nodes, described

    def node(self, node_id: int) -> BrokerNode:
        for node in self.nodes():
            if node.node_id == node_id:
                return node
        raise Unreachable(f"there is no broker {node_id}.")
