"""The brokers of one cluster as a reader sees them: connections that stay open, and which broker is asked next.

One pool for all who read: `topics.Client` (Arrow tables, tasks, services) and Spark's driver, which plans each batch with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from penstock.client.connection import BrokerConnection
from penstock.client.errors import AccessRefused, ReadFailed, reason
from penstock.client.leaders import Leader, offset_requests, read_offsets
from penstock.client.options import ClientOptions
from penstock.client.patience import Retriable, patiently
from penstock.model.endpoints import Address
from penstock.model.ids import TopicPartition
from penstock.wire.messages.list_offsets import ListOffsetsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from penstock.wire.schema import Message

T = TypeVar("T")
R = TypeVar("R", bound=Message)


class _Unconnected(Retriable):
    """No connection; the text is the address and why."""


class Brokers:
    """Use from one thread.

    A cluster that was there a moment ago is waited for; one that was never met is refused at once. `is_known` says that
    somebody else has met it. `named` puts the option of the addresses, as this reader's users write it, to a complaint.
    """

    def __init__(
        self, options: ClientOptions, *, is_known: bool = False, named: Callable[[str], str] = str
    ) -> None:
        self.options = options
        self.addresses: dict[int, Address] = {}
        """By node id, as the last Metadata answer has them."""
        self.answered: Address | None = None
        """Who answered a question for any broker last, and is asked first from now on."""
        self._is_known = is_known
        self._named = named
        self._connections: dict[Address, BrokerConnection] = {}
        self._doubted: Address | None = None

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def connect(self, node_id: int) -> BrokerConnection:
        """A new connection, which is the caller's; Retriable where the broker cannot be reached now."""
        address = self._address(node_id)
        try:
            return opened(address, self.options)
        except OSError as error:
            raise Retriable(f"cannot reach the broker at {address}: {reason(error)}") from None

    def ask(self, node_id: int, request: Message, answer: type[R], *, highest: int | None = None) -> R:
        """Of one broker, over a connection that stays open; `highest` bounds the version. Retriable."""
        address = self._address(node_id)
        try:
            return self._ask(address, request, answer, highest)
        except _Unconnected as error:
            raise Retriable(f"cannot reach the broker at {error}") from None

    def ask_any(self, request: Message, answer: type[R]) -> R:
        """Of the broker that answered last, else of one that is connected, known or given; of a doubted one last.

        Retriable where none of them answers, and ReadFailed if none has ever done so.
        """
        unreachable, silent = [], []
        for address in self._candidates():
            try:
                return self.ask_at(address, request, answer)
            except _Unconnected as error:
                unreachable.append(str(error))
            except Retriable as error:
                silent.append(str(error))
        if unreachable:
            silent.insert(0, f"cannot reach a broker at {'; '.join(unreachable)}")
        complaint = self._named("; ".join(silent))
        if self.addresses or self._is_known:
            raise Retriable(complaint)
        raise ReadFailed(complaint)  # one that has taken us and never answered more likely does not want to

    def ask_at(self, address: Address, request: Message, answer: type[R]) -> R:
        """As `ask_any`, of the broker at this address only. Retriable."""
        found = self._ask(address, request, answer, None)
        self.answered = address
        return found

    def metadata(self, names: Iterable[str] | None) -> MetadataResponse:
        """Of these topics, or of all; who the brokers are is remembered."""
        return self._remembered(self.ask_any(metadata_request(names), MetadataResponse))

    def metadata_at(self, address: Address, names: Iterable[str] | None) -> MetadataResponse:
        return self._remembered(self.ask_at(address, metadata_request(names), MetadataResponse))

    def offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        leaders: Mapping[TopicPartition, Leader],
        *,
        isolation_level: int,
    ) -> dict[TopicPartition, int | None]:
        """One question to each leader. None: all records are older than the time that was asked for. Retriable, ReadFailed."""
        found: dict[TopicPartition, int | None] = {}
        requests = offset_requests(timestamps, leaders, isolation_level=isolation_level)
        for node_id, request in requests.items():
            found |= read_offsets(self.ask(node_id, request, ListOffsetsResponse))
        return found

    def patiently(self, attempt: Callable[[], T], *, before_next: Callable[[], None] | None = None) -> T:
        """Tries again what is retriable, until the patience of the options is over; before that it doubts who answered."""
        again = before_next or self.doubt
        try:
            return patiently(attempt, self.options.patience(), before_next=lambda _: again())
        except Retriable as error:
            raise ReadFailed(str(error)) from None

    def doubt(self) -> None:
        """What a broker said led nowhere: it may be cut off from the others. The next one is asked from now on."""
        if self.answered is not None:
            self._doubted, self.answered = self.answered, None

    def _remembered(self, described: MetadataResponse) -> MetadataResponse:
        self.addresses = {broker.node_id: Address(broker.host, broker.port) for broker in described.brokers}
        kept = {*self.addresses.values(), *self.options.addresses}
        for address in self._connections.keys() - kept:
            self._connections.pop(address).close()
        return described

    def _candidates(self) -> list[Address]:
        known = (*self._connections, *self.addresses.values(), *self.options.addresses)
        first = () if self.answered is None else (self.answered,)
        return list(dict.fromkeys((*first, *those_after(known, self._doubted))))

    def _address(self, node_id: int) -> Address:
        address = self.addresses.get(node_id)
        if address is None:
            raise Retriable("a partition has no leader")
        return address

    def _ask(self, address: Address, request: Message, answer: type[R], highest: int | None) -> R:
        connection = self._connections.get(address)
        if connection is None:
            try:
                connection = self._connections[address] = opened(address, self.options)
            except OSError as error:
                raise _Unconnected(f"{address}: {reason(error)}") from None
        try:
            return connection.ask(request, answer, version=connection.version(type(request), highest=highest))
        except BaseException as error:
            # Its answer may come yet, and would be taken for that to the next question.
            del self._connections[address]
            connection.close()
            if isinstance(error, OSError):
                raise Retriable(f"the broker at {address} stopped answering: {reason(error)}") from None
            raise


def check_reachable(options: ClientOptions, *, timeout_s: float) -> None:
    """ReadFailed with the addresses if nobody takes a connection at any of them; AccessRefused where we are not let in."""
    complaints = []
    for address in options.addresses:
        try:
            opened(address, options, timeout_s=timeout_s).close()
            return
        except OSError as error:
            complaints.append(f"{address}: {reason(error)}")
    raise ReadFailed(f"cannot reach a broker at {'; '.join(complaints)}")


def is_login_right(options: ClientOptions, *, timeout_s: float) -> bool:
    """Whether a broker takes the name and password of these options; ReadFailed where none can say."""
    try:
        check_reachable(options, timeout_s=timeout_s)
    except AccessRefused as error:
        if error.option != "sasl.password":
            raise
        return False
    return True


def opened(address: Address, options: ClientOptions, *, timeout_s: float | None = None) -> BrokerConnection:
    if timeout_s is None:
        timeout_s = options.request_timeout_ms / 1000
    return BrokerConnection(
        address, client_id=options.client_id, timeout_s=timeout_s, security=options.security
    )


def metadata_request(names: Iterable[str] | None) -> MetadataRequest:
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def those_after(addresses: Iterable[Address], doubted: Address | None) -> list[Address]:
    """Each address once, those first that come after the doubted one. A broker may have two: so all have their turn."""
    each = list(dict.fromkeys(addresses))
    first = each.index(doubted) + 1 if doubted is not None and doubted in each else 0
    return each[first:] + each[:first]
