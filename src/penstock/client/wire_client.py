"""One request, one answer, for the questions that librdkafka cannot ask: a broker's connection, with the errors of commands.

The version of each request is the highest that both sides have. No pipelining, no retries. A connection is opened by
`Connection.wire`, which knows how the cluster is secured.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from penstock.client.connection import BrokerConnection, GreetingRefused, NoCommonVersion
from penstock.client.errors import AccessRefused, Refused, Unreachable, reason
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Address
from penstock.wire.messages.api_versions import ApiVersionsResponse
from penstock.wire.schema import Message

if TYPE_CHECKING:
    from penstock.client.security import Security

R = TypeVar("R", bound=Message)

TIMEOUT_S = 10.0
CLIENT_ID = "penstock-cli"
UNSUPPORTED_VERSION = 35


class UnsupportedByBroker(Refused):
    """The broker does not have this API in any version that we speak."""

    def __init__(self, api: str) -> None:
        super().__init__(
            f"the broker does not offer {api}",
            code=UNSUPPORTED_VERSION,
            exception_name="org.apache.kafka.common.errors.UnsupportedVersionException",
        )


class WireClient:
    """A connection to one broker. Use as a context."""

    def __init__(
        self,
        address: Address,
        *,
        security: Security | None = None,
        timeout_s: float = TIMEOUT_S,
        greeting_timeout_s: float | None = None,
    ) -> None:
        self.address = address
        try:
            self._connection = BrokerConnection(
                address,
                client_id=CLIENT_ID,
                timeout_s=timeout_s,
                greeting_timeout_s=timeout_s if greeting_timeout_s is None else greeting_timeout_s,
                security=security,
            )
        except AccessRefused as error:
            raise Unreachable(f"{error}.") from None
        except GreetingRefused as error:
            raise Refused(
                f"the broker refused ApiVersions with error {error.code}", code=error.code
            ) from None
        except OSError as error:
            raise Unreachable(f"cannot reach the broker at {address}: {reason(error)}") from None

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @property
    def api_versions(self) -> ApiVersionsResponse:
        """All that the broker says about itself."""
        return self._connection.api_versions

    def ask(
        self,
        request: Message,
        answer: type[R],
        *,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> R:
        """`max_version` keeps away from later versions of the API, such as those that name topics by id. `timeout_s` is
        for an answer that may take longer than others."""
        try:
            version = self._connection.version(type(request), highest=max_version)
            return self._connection.ask(request, answer, version=version, timeout_s=timeout_s)
        except NoCommonVersion:
            raise UnsupportedByBroker(ApiKey(request.API_KEY).name) from None
        except AccessRefused as error:  # when it was time to log in again
            raise Unreachable(f"{error}.") from None
        except OSError as error:
            raise Unreachable(f"the broker at {self.address} stopped answering: {reason(error)}") from None
