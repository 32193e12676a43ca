"""Access rules for the handlers: found and removed while others are served. Thousands of rules take a while to look through."""

from asyncio import sleep
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from penstock.controller.acls import Found, create_acls, delete_acls, deletion_filter
from penstock.controller.decision import Decision
from penstock.metadata.image import ClusterImage
from penstock.model.acl import Pattern, Rule
from penstock.model.errors import ApiError, ErrorCode
from penstock.security.acl_filters import AclFilter
from penstock.wire.messages.create_acls import AclCreation, AclCreationResult
from penstock.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsFilterResult

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithChanges, WithClustered, WithImage

    class Needs(WithAuthorizer, WithChanges, WithClustered, WithImage, Protocol): ...


GIVE_WAY_EVERY: Final = 2000
"""Rules that are looked at before others get their turn."""
MAX_MATCHES: Final = 50_000
"""What one portion of DeleteAcls may match: filters may match the same rules again and again."""


def check_is_on(node: "WithAuthorizer", detail: str) -> None:
    if not node.authorizer.is_on:
        raise ApiError(ErrorCode.SECURITY_DISABLED, detail)


async def create(node: "Needs", creations: Sequence[AclCreation]) -> list[AclCreationResult]:
    check_is_on(node, "No Authorizer is configured.")
    return await node.changes.make_for_client(
        lambda: create_acls(node.image, creations, notify=node.is_clustered)
    )


async def delete(node: "Needs", filters: Sequence[DeleteAclsFilter]) -> list[DeleteAclsFilterResult]:
    check_is_on(node, "No Authorizer is configured.")

    async def decide() -> Decision[DeleteAclsFilterResult]:
        found = await _find_all(node.image, filters)
        # Rules that another broker has changed meanwhile: the versions of their nodes tell.
        return delete_acls(node.image, found, notify=node.is_clustered)

    return await node.changes.make_for_client(decide)


class Search:
    """Looks through rules, and gives way to others now and then."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._seen = 0

    async def find(self, wanted: AclFilter) -> AsyncIterator[tuple[Pattern, tuple[Rule, ...]]]:
        for pattern, rules in list(wanted.candidates(self._image.acls)):
            matching = wanted.of(pattern, rules)
            if matching:
                yield pattern, matching
            self._seen += 1 + len(rules)
            if self._seen >= GIVE_WAY_EVERY:
                self._seen = 0
                await sleep(0)


async def _find_all(image: ClusterImage, filters: Sequence[DeleteAclsFilter]) -> list[Found | ApiError]:
    search = Search(image)
    answers: list[Found | ApiError] = []
    matches = 0
    for each in filters:
        try:
            found = [match async for match in search.find(deletion_filter(each))]
            matches += sum(len(rules) for _, rules in found)
            if matches > MAX_MATCHES:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"the filters of this request match more than {MAX_MATCHES} rules; send fewer at a time",
                )
        except ApiError as refusal:
            answers.append(refusal)
        else:
            answers.append(found)
    return answers
