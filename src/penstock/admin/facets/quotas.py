"""`cluster.quotas`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.admin.clients import ClusterClients
from penstock.admin.quotas import DEFAULT, QuotasOf, alter_quotas, check_names, parts_of, quotas
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError


class Quotas:
    """What users, client ids and IP addresses may take. The name "<default>" stands for all without a quota of their own."""

    DEFAULT = DEFAULT

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def list(self) -> list[QuotasOf]:
        """All that are set.

        >>> cluster.quotas.list()
        [QuotasOf(user='ana', client_id=None, ip=None, values={'producer_byte_rate': 5000000.0})]
        """
        return self._clients.call(quotas)

    def set(
        self,
        values: Mapping[str, float],
        *,
        user: str | None = None,
        client_id: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Sets these and leaves others as they are.

        >>> cluster.quotas.set({"producer_byte_rate": 5_000_000}, user="ana")
        """
        parts = parts_of(user, client_id, ip)
        check_names([*values], of_ip=ip is not None)

        def ask(client: ClusterClient) -> None:
            alter_quotas(client, parts, values)

        self._clients.change(ask)

    def remove(
        self,
        names: Sequence[str] = (),
        *,
        user: str | None = None,
        client_id: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Removes these; without names all of them. UserError when there are none.

        >>> cluster.quotas.remove(user="ana")
        """
        parts = parts_of(user, client_id, ip)
        check_names(names, of_ip=ip is not None)

        def ask(client: ClusterClient) -> None:
            there = next((one.values for one in quotas(client) if one[:3] == (user, client_id, ip)), {})
            gone = [name for name in names or there if name in there]
            if not gone:
                raise UserError("there is no such quota")
            alter_quotas(client, parts, dict.fromkeys(gone))

        self._clients.change(ask)
