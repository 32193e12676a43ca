"""What instances of a service tell one another by way of a group's protocol: JSON in the forms of Confluent's registry. Pure.

    metadata of a member   {"host":"10.0.0.1","port":8081,"master_eligibility":true,"scheme":"http","version":1,"leader":false}
    assignment, the same for all   {"error":0,"master":"<member id>","master_identity":{…},"version":1}

The group's own leader chooses: the eligible member that leads already, otherwise the one with the smallest address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import orjson

from penstock.model.endpoints import bracketed

VERSION: Final = 1
DUPLICATE_ADDRESSES: Final = 1


class Identity(NamedTuple):
    scheme: str
    host: str
    port: int
    is_eligible: bool = True
    leads: bool = False

    @property
    def url(self) -> str:
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    def is_same(self, other: Identity | None) -> bool:
        return other is not None and self.url == other.url

    def document(self) -> dict[str, object]:
        return {
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
            "version": VERSION,
            "leader": self.leads,
        }

    def metadata(self) -> bytes:
        return orjson.dumps(self.document())


class Assignment(NamedTuple):
    member_id: str
    identity: Identity | None
    """None: nobody may lead."""
    has_duplicates: bool = False

    def data(self) -> bytes:
        document: dict[str, object] = {"error": DUPLICATE_ADDRESSES if self.has_duplicates else 0}
        if self.identity is not None:
            document |= {"master": self.member_id, "master_identity": self.identity.document()}
        return orjson.dumps({**document, "version": VERSION})


def read_identity(data: bytes) -> Identity | None:
    """None for what is no identity."""
    try:
        return _identity(orjson.loads(data))
    except orjson.JSONDecodeError:
        return None


def _identity(document: object) -> Identity | None:
    if not isinstance(document, dict):
        return None
    host, port = document.get("host"), document.get("port")
    if not isinstance(host, str) or not isinstance(port, int):
        return None
    eligible = document.get("master_eligibility", document.get("leader_eligibility", True))
    scheme = document.get("scheme") or "http"
    return Identity(str(scheme), host, port, eligible is True, document.get("leader") is True)


def read_assignment(data: bytes) -> Assignment | None:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    member_id = document.get("master", document.get("leader"))
    identity = _identity(document.get("master_identity", document.get("leader_identity")))
    return Assignment(str(member_id or ""), identity, document.get("error") == DUPLICATE_ADDRESSES)


def choose(members: Mapping[str, bytes]) -> Assignment:
    """`members`: metadata by member id."""
    known = {member: identity for member, data in members.items() if (identity := read_identity(data))}
    urls = [identity.url for identity in known.values()]
    eligible = [(identity.url, member) for member, identity in known.items() if identity.is_eligible]
    leading = [member for _, member in eligible if known[member].leads]
    if not eligible:
        return Assignment("", None, len(set(urls)) < len(urls))
    chosen = leading[0] if len(leading) == 1 else min(eligible)[1]
    return Assignment(chosen, known[chosen], len(set(urls)) < len(urls))
