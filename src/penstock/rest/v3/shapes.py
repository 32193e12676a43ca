"""What all resources of v3 have: `kind`, `metadata` with the address of the resource, and links to related ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from penstock.rest.access import Access, Accesses
from penstock.rest.addresses import Addresses, part
from penstock.web.call import Call
from penstock.web.content_types import PLAIN_JSON, ContentTypes
from penstock.web.errors import HttpError

CLUSTER: Final = "/v3/clusters/{cluster}"
CONTENT: Final[ContentTypes] = PLAIN_JSON

Shape = dict[str, Any]


class Links(NamedTuple):
    """Addresses below one cluster."""

    base: str
    cluster_id: str

    def to(self, *parts: object) -> str:
        return "/".join(
            (f"{self.base}/v3/clusters/{part(self.cluster_id)}", *(part(str(one)) for one in parts))
        )

    def related(self, *parts: object) -> dict[str, str]:
        return {"related": self.to(*parts)}

    def resource(self, kind: str, path: Iterable[object], name: str, /, **fields: object) -> Shape:
        """`name` is what stands behind the cluster in the resource's name: `topic=orders/partition=1`."""
        metadata = {
            "self": self.to(*path),
            "resource_name": f"crn:///kafka={self.cluster_id}" + (f"/{name}" if name else ""),
        }
        return {"kind": kind, "metadata": metadata, "cluster_id": self.cluster_id, **fields}

    def collection(self, kind: str, path: Iterable[object], data: Iterable[Shape]) -> Shape:
        return {"kind": kind, "metadata": {"self": self.to(*path), "next": None}, "data": list(data)}


class View(NamedTuple):
    """One request: as whom the cluster sees it, and the addresses of its answer."""

    access: Access
    links: Links


class Views:
    def __init__(self, accesses: Accesses, addresses: Addresses) -> None:
        self._accesses = accesses
        self._addresses = addresses

    async def of(self, call: Call) -> View:
        """HttpError 404 for another cluster than ours."""
        access = self._accesses.at_once(call) or await self._accesses.of(call)
        cluster_id = await access.cluster_id()
        asked = call.values.get("cluster")
        if asked is not None and asked != cluster_id:
            raise HttpError(404, f"Cluster {asked[:100]} cannot be found.")
        return View(access, Links(self._addresses.base(call), cluster_id))


def not_found() -> HttpError:
    return HttpError(404)
