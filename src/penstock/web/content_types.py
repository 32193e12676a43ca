"""Content types with versions: which ones a request may have, and in which one it is answered.

Quality values count as in HTTP (`Accept: a;q=0.5, b`). Of types that the client likes equally the service's order decides. What
was negotiated for a header is remembered: clients send the same few headers again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from penstock.web.errors import HttpError

JSON: Final = "application/json"
OCTETS: Final = "application/octet-stream"
MAX_HEADER_CHARS: Final = 4096
REMEMBERED: Final = 512


class ContentTypes:
    """`accepted` are those of request bodies; a request without one has the first. `offered` are those of answers, the
    default first."""

    def __init__(self, *, accepted: Sequence[str], offered: Sequence[str]) -> None:
        self.accepted = tuple(accepted)
        self.offered = tuple(offered)
        self._of_request = lru_cache(REMEMBERED)(self._uncached_of_request)
        self._of_answer = lru_cache(REMEMBERED)(self._uncached_of_answer)

    def of_request(self, header: str) -> str:
        """The media type without its parameters, in small letters; HttpError 415 for another."""
        return self._of_request(header) if header else self.accepted[0]

    def of_answer(self, header: str) -> str:
        """HttpError 406 where the client takes none of ours."""
        return self._of_answer(header) if header else self.offered[0]

    def _uncached_of_request(self, header: str) -> str:
        media = header.partition(";")[0].strip().lower()
        if media not in self.accepted:
            raise HttpError(415)
        return media

    def _uncached_of_answer(self, header: str) -> str:
        wishes = parse_accept(header)
        best, best_quality = "", 0.0
        for offered in self.offered:
            quality = _quality(wishes, offered)
            if quality > best_quality:
                best, best_quality = offered, quality
        if not best:
            raise HttpError(406)
        return best


def parse_accept(header: str) -> list[tuple[str, float]]:
    wishes = []
    for part in header[:MAX_HEADER_CHARS].split(","):
        media, *parameters = (word.strip().lower() for word in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    quality = min(1.0, max(0.0, float(value)))
                except ValueError:
                    quality = 0.0
        if media:
            wishes.append((media, quality))
    return wishes


def _quality(wishes: list[tuple[str, float]], offered: str) -> float:
    """That of the most specific wish that covers it."""
    family = offered.partition("/")[0] + "/*"
    for pattern in (offered, family, "*/*"):
        for media, quality in wishes:
            if media == pattern:
                return quality
    return 0.0


PLAIN_JSON: Final = ContentTypes(accepted=(JSON, OCTETS), offered=(JSON,))
