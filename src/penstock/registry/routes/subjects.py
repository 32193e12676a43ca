"""/subjects: which there are, looking up a schema, deleting."""

from __future__ import annotations

from typing import Final

from penstock.model.acl import Operation
from penstock.registry.decisions.delete import delete_subject
from penstock.registry.names import ANY_CONTEXT, DEFAULT_CONTEXT, context_of, parsed
from penstock.registry.refusals import schema_not_found, subject_not_found
from penstock.registry.registry import Registry
from penstock.registry.routes.paths import (
    DELETED,
    LIST_QUERY,
    Paths,
    candidate_in,
    in_context,
    portion,
    readable,
    subject_of,
    version_document,
)
from penstock.registry.state import State
from penstock.registry.work import looked_up
from penstock.web.call import Answer, Call

BODY: Final = "the schema: schema, schemaType, references, metadata, ruleSet"
NORMALIZE: Final = {"normalize": "in its normalized form"}


def add_to(paths: Paths, registry: Registry) -> None:
    @paths.on(
        "GET",
        "/subjects",
        "The names of all subjects.",
        query={
            "subjectPrefix": "only names that begin so; :*: in front is all contexts",
            **DELETED,
            "deletedOnly": "only soft-deleted ones",
            **LIST_QUERY,
        },
    )
    async def subjects(call: Call) -> list[str]:
        names = subjects_with_prefix(
            registry.state, in_context(call, call.query("subjectPrefix") or _default(call))
        )
        only, deleted = call.flag("deletedOnly"), call.flag("deleted")
        found = [
            name
            for name in names
            if next(registry.state.versions(name, deleted=deleted, deleted_only=only), None) is not None
            and not (only and registry.state.has(name, deleted=False))
        ]
        return portion(call, readable(registry, call, Operation.DESCRIBE, found))

    @paths.on(
        "POST",
        "/subjects/{subject}",
        "The version of the subject that is this schema.",
        query={**NORMALIZE, **DELETED, "format": "form of the schema in the answer"},
        body=BODY,
    )
    async def lookup(call: Call) -> object:
        subject = subject_of(registry, call)
        registry.access.check(call, Operation.READ, subject)
        candidate = candidate_in(registry, call, subject, await call.json())
        normalize = call.flag("normalize") or registry.config(subject).get("normalize") is True
        deleted = call.flag("deleted")
        found = await looked_up(registry, subject, candidate, normalize=normalize, deleted=deleted)
        if found is None:
            if not registry.state.has(subject, deleted=deleted):
                raise subject_not_found(subject)
            raise schema_not_found()
        if found.subject != subject:
            registry.access.check(call, Operation.READ, found.subject)
        return await version_document(registry, call, found)

    @paths.on(
        "DELETE",
        "/subjects/{subject}",
        "Deletes the subject: softly, so that it can be undone, or for good.",
        query={"permanent": "for good; it must have been deleted softly before"},
    )
    async def delete(call: Call) -> Answer:
        subject = subject_of(registry, call)
        registry.access.check(call, Operation.DELETE, subject)
        permanent = call.flag("permanent")
        return await registry.write(call, lambda state: delete_subject(state, subject, permanent=permanent))

    @paths.on(
        "GET",
        "/subjects/{subject}/metadata",
        "The newest version with this metadata.",
        query={"key": "a property of the metadata; several may be given", "value": "its value", **DELETED},
    )
    async def latest_with_metadata(call: Call) -> object:
        subject = subject_of(registry, call)
        registry.access.check(call, Operation.READ, subject)
        wanted = dict(zip(call.queries("key"), call.queries("value"), strict=False))
        deleted = call.flag("deleted")
        from penstock.registry.decisions.lookup import found as found_version

        for version in reversed(list(registry.state.versions(subject, deleted=deleted))):
            properties = (version.content.metadata or {}).get("properties")
            properties = properties if isinstance(properties, dict) else {}
            if all(properties.get(key) == value for key, value in wanted.items()):
                return await version_document(registry, call, found_version(version))
        if not registry.state.has(subject, deleted=deleted):
            raise subject_not_found(subject)
        raise schema_not_found()


def _default(call: Call) -> str:
    return "" if "context" in call.values else ANY_CONTEXT


def subjects_with_prefix(state: State, prefix: str) -> list[str]:
    """In order. `:*:x` is x in any context, `x` in the default one."""
    context, begin = parsed(prefix)
    if context == "*":
        return sorted(name for name in state.subjects if parsed(name).subject.startswith(begin))
    if context == DEFAULT_CONTEXT:
        return sorted(
            name for name in state.subjects if name.startswith(begin) and context_of(name) == DEFAULT_CONTEXT
        )
    return sorted(name for name in state.subjects if name.startswith(prefix))
