"""/subjects/{subject}/versions: registering, reading and deleting versions."""

from __future__ import annotations

from typing import Any

from penstock.model.acl import Operation
from penstock.registry.candidates import Candidate
from penstock.registry.decisions.delete import delete_version
from penstock.registry.decisions.lookup import Found, version_of
from penstock.registry.decisions.lookup import found as found_version
from penstock.registry.names import DEFAULT_CONTEXT, context_of, joined
from penstock.registry.refusals import Refusal, subject_not_found
from penstock.registry.registry import Registry
from penstock.registry.routes.paths import (
    DELETED,
    LATEST,
    LIST_QUERY,
    REFERENCES,
    Paths,
    candidate_in,
    formatted,
    portion,
    subject_of,
    version_document,
    version_in,
    wants_new_fields,
)
from penstock.registry.routes.subjects import BODY, NORMALIZE
from penstock.registry.work import known_at_once, registered
from penstock.web.call import Answer, Call

FORMAT = {"format": "form of the schema in the answer"}


def add_to(paths: Paths, registry: Registry) -> None:
    def found_by(call: Call) -> Found:
        """The version that the path names; a plain subject also in other contexts."""
        subject, number, deleted = subject_of(registry, call), version_in(call), call.flag("deleted")
        registry.access.check(call, Operation.READ, subject)
        try:
            return found_version(version_of(registry.state, subject, number, deleted=deleted))
        except Refusal:
            if context_of(subject) == DEFAULT_CONTEXT and number != LATEST:
                for context in sorted(registry.state.contexts):
                    version = registry.state.subjects.get(joined(context, subject), {}).get(number)
                    if version is not None and (deleted or not version.is_deleted):
                        registry.access.check(call, Operation.READ, version.subject)
                        return found_version(version)
            raise

    @paths.on(
        "GET",
        "/subjects/{subject}/versions",
        "The numbers of the subject's versions.",
        query={
            **DELETED,
            "deletedOnly": "only soft-deleted ones",
            "deletedAsNegative": "soft-deleted ones with a minus",
            **LIST_QUERY,
        },
    )
    async def versions(call: Call) -> list[int]:
        subject = subject_of(registry, call)
        registry.access.check(call, Operation.DESCRIBE, subject)
        as_negative = call.flag("deletedAsNegative")
        deleted = call.flag("deleted") or as_negative
        found = list(registry.state.versions(subject, deleted=deleted, deleted_only=call.flag("deletedOnly")))
        if not found:
            raise subject_not_found(subject)
        return portion(
            call, [-each.number if as_negative and each.is_deleted else each.number for each in found]
        )

    @paths.on(
        "POST",
        "/subjects/{subject}/versions",
        "Registers a schema; one that is registered already stays what it is.",
        query={**NORMALIZE, "force": "whether it is compatible or not", **FORMAT},
        body=BODY,
    )
    async def register(call: Call) -> Answer:
        subject = subject_of(registry, call, is_valid=True)
        registry.access.check(call, Operation.WRITE, subject)
        body = await call.body()
        candidate = candidate_in(registry, call, subject, call.parsed_json(body))
        normalize = call.flag("normalize") or registry.config(subject).get("normalize") is True
        known = known_at_once(registry, subject, candidate, normalize=normalize)
        if known is not None:
            return await answer(call, candidate, known)

        async def attempt() -> Answer:
            found = await registered(
                registry, subject, candidate, normalize=normalize, force=call.flag("force")
            )
            return await answer(call, candidate, found)

        return await registry.at_leader(call, body, attempt)

    async def answer(call: Call, asked: Candidate, found: Found) -> Answer:
        """With the schema only where it is more than what was asked: clients keep it in place of their own, and those of
        Protobuf need it in the form in which they have sent it."""
        if not wants_new_fields(call):
            return Answer.json({"id": found.id})
        document: dict[str, Any] = {"id": found.id, "version": found.version, **found.more()}
        form = (call.query("format") or "").strip()
        is_more = (asked.metadata, asked.rule_set) != (found.content.metadata, found.content.rule_set)
        if form or is_more or not asked.text.strip():
            document.update(found.content.document())
        if form:
            document["schema"] = await formatted(registry, found, form)
        return Answer.json(document)

    @paths.on(
        "GET",
        "/subjects/{subject}/versions/{version}",
        "A version: a number or latest.",
        query={**FORMAT, **REFERENCES, **DELETED},
    )
    async def version(call: Call) -> object:
        return await version_document(registry, call, found_by(call))

    @paths.on(
        "GET",
        "/subjects/{subject}/versions/{version}/schema",
        "The schema of a version and nothing else.",
        query={**FORMAT, **DELETED},
    )
    async def schema(call: Call) -> Answer:
        found = found_by(call)
        form = (call.query("format") or "").strip()
        text = await formatted(registry, found, form) if form else found.content.text
        return Answer(text.encode())

    @paths.on(
        "GET",
        "/subjects/{subject}/versions/{version}/referencedby",
        "The ids of schemas that refer to this version.",
        query={**DELETED, **LIST_QUERY},
    )
    async def referenced_by(call: Call) -> list[int]:
        subject, number = subject_of(registry, call), version_in(call)
        registry.access.check(call, Operation.READ, subject)
        state = registry.state
        version = version_of(state, subject, number, deleted=True)
        if call.flag("deleted"):
            places = list(state.referrers.get(version.place, ()))
        else:
            places = list(state.live_referrers(version.place))
        return portion(call, sorted({state.subjects[name][at].id for name, at in places}))

    @paths.on(
        "DELETE",
        "/subjects/{subject}/versions/{version}",
        "Deletes a version: softly, or for good.",
        query={"permanent": "for good; it must have been deleted softly before"},
    )
    async def delete(call: Call) -> Answer:
        subject, number = subject_of(registry, call), version_in(call)
        registry.access.check(call, Operation.DELETE, subject)
        permanent = call.flag("permanent")
        return await registry.write(
            call, lambda state: delete_version(state, subject, number, permanent=permanent)
        )
