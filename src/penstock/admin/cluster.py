"""The door of the admin library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from penstock.admin.clients import ClusterClients
from penstock.client.clients import REQUEST_TIMEOUT_S, Connection
from penstock.client.cluster_client import ClusterClient

if TYPE_CHECKING:
    from penstock.admin.facets.acls import Acls
    from penstock.admin.facets.brokers import Brokers, HealthChecks
    from penstock.admin.facets.configs import Configs
    from penstock.admin.facets.dead_letters import DeadLetters
    from penstock.admin.facets.groups import Groups
    from penstock.admin.facets.moves import Moves
    from penstock.admin.facets.offsets import Offsets
    from penstock.admin.facets.quotas import Quotas
    from penstock.admin.facets.strays import Strays
    from penstock.admin.facets.tokens import Tokens
    from penstock.admin.facets.topics import Topics
    from penstock.admin.facets.transactions import Transactions
    from penstock.admin.facets.users import Users

T = TypeVar("T")


class Cluster:
    """A cluster to be administered: one of Penstock, or of Apache Kafka.

    `bootstrap` is HOST:PORT, or several with commas. `properties` have Kafka's names, as in a client's properties file:
    `security.protocol`, `sasl.jaas.config`, `ssl.truststore.location` and the others.

    Nothing is connected before the first call. Calls are synchronous. A `Cluster` may be shared between threads: calls side by
    side have connections of their own. `close` it in the end, or use it as a context.

    Errors, from `penstock.client.errors`: `Unreachable` when no broker answers, `Refused` when the cluster answers with an error
    (`code` is Kafka's), `UserError` when what was asked for cannot be done.

    >>> with Cluster("localhost:9092") as cluster:
    ...     cluster.topics.create("orders", partitions=3)
    True
    """

    def __init__(
        self,
        bootstrap: str = "localhost:9092",
        properties: Mapping[str, str] | None = None,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        """`timeout_s` bounds how long a retriable error is asked again before it is told."""
        self._open(Connection(bootstrap, dict(properties or {})), timeout_s)

    @classmethod
    def over(cls, connection: Connection, *, timeout_s: float = REQUEST_TIMEOUT_S) -> Cluster:
        """The same, from what a command line said about the cluster."""
        cluster = cls.__new__(cls)
        cluster._open(connection, timeout_s)
        return cluster

    def _open(self, connection: Connection, timeout_s: float) -> None:
        self._clients = ClusterClients(connection, timeout_s=timeout_s)

    @cached_property
    def topics(self) -> Topics:
        """Topics: list, describe, create, grow, delete, delete records."""
        from penstock.admin.facets.topics import Topics

        return Topics(self._clients)

    @cached_property
    def configs(self) -> Configs:
        """The configs of topics, brokers and groups."""
        from penstock.admin.facets.configs import Configs

        return Configs(self._clients)

    @cached_property
    def groups(self) -> Groups:
        """Groups: list, describe, lag, reset, delete."""
        from penstock.admin.facets.groups import Groups

        return Groups(self._clients)

    @cached_property
    def offsets(self) -> Offsets:
        """Where partitions begin and end, and where a time is in them."""
        from penstock.admin.facets.offsets import Offsets

        return Offsets(self._clients)

    @cached_property
    def moves(self) -> Moves:
        """Replicas that move between brokers."""
        from penstock.admin.facets.moves import Moves

        return Moves(self._clients)

    @cached_property
    def transactions(self) -> Transactions:
        """Transactions, and those that hang."""
        from penstock.admin.facets.transactions import Transactions

        return Transactions(self._clients)

    @cached_property
    def health(self) -> HealthChecks:
        """Whether the cluster is healthy."""
        from penstock.admin.facets.brokers import HealthChecks

        return HealthChecks(self._clients)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """Dead letter topics: list and replay."""
        from penstock.admin.facets.dead_letters import DeadLetters

        return DeadLetters(self._clients)

    @cached_property
    def brokers(self) -> Brokers:
        """The brokers and the controller."""
        from penstock.admin.facets.brokers import Brokers

        return Brokers(self._clients)

    @cached_property
    def users(self) -> Users:
        """Users that log in by SCRAM."""
        from penstock.admin.facets.users import Users

        return Users(self._clients)

    @cached_property
    def acls(self) -> Acls:
        """Access rules: who may do what."""
        from penstock.admin.facets.acls import Acls

        return Acls(self._clients)

    @cached_property
    def quotas(self) -> Quotas:
        """What users, client ids and IP addresses may take."""
        from penstock.admin.facets.quotas import Quotas

        return Quotas(self._clients)

    @cached_property
    def tokens(self) -> Tokens:
        """Delegation tokens."""
        from penstock.admin.facets.tokens import Tokens

        return Tokens(self._clients)

    @cached_property
    def strays(self) -> Strays:
        """Logs that the metadata does not place where they are, and topics made again of them."""
        from penstock.admin.facets.strays import Strays

        return Strays(self._clients)

    def ask(self, question: Callable[[ClusterClient], T]) -> T:
        """What `question` returns, for what the facets do not have; it is called again where idle connections were lost."""
        return self._clients.call(question)

    def change(self, question: Callable[[ClusterClient], T]) -> T:
        """The same for what changes something: it is never called a second time."""
        return self._clients.change(question)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. A call after it is a RuntimeError."""
        self._clients.close()
