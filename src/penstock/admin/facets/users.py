"""`cluster.users`."""

from __future__ import annotations

from penstock.admin.clients import ClusterClients
from penstock.admin.users import (
    DEFAULT_MECHANISM,
    UserCredential,
    remove_credential,
    set_password,
    users,
)
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError
from penstock.security.scram import DEFAULT_ITERATIONS


class Users:
    """The users of a cluster that log in by SCRAM."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def list(self) -> list[UserCredential]:
        """Every user, once for each mechanism.

        >>> cluster.users.list()
        [UserCredential(name='ana', mechanism='SCRAM-SHA-512', iterations=8192)]
        """
        return self._clients.call(users)

    def set(
        self,
        name: str,
        password: str,
        *,
        mechanism: str = DEFAULT_MECHANISM,
        iterations: int = DEFAULT_ITERATIONS,
    ) -> None:
        """Makes the user, or gives it another password.

        >>> cluster.users.set("ana", "s3cret")
        """

        def ask(client: ClusterClient) -> None:
            set_password(client, name, password, mechanism=mechanism, iterations=iterations)

        self._clients.change(ask)

    def remove(self, name: str) -> None:
        """Removes all credentials of the user. Connections that are open stay open. UserError when there is no such user.

        >>> cluster.users.remove("ana")
        """

        def ask(client: ClusterClient) -> None:
            found = users(client, [name])
            if not found:
                raise UserError(f"there is no user '{name}'.")
            for credential in found:
                remove_credential(client, name, credential.mechanism)

        self._clients.change(ask)
