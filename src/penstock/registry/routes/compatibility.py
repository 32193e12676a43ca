"""/compatibility: whether a schema could be registered, without registering it."""

from __future__ import annotations

from typing import Any

from penstock.model.acl import Operation
from penstock.registry.refusals import InvalidText, version_not_found
from penstock.registry.registry import Registry
from penstock.registry.routes.paths import LATEST, Paths, candidate_in, subject_of, version_in
from penstock.registry.routes.subjects import BODY, NORMALIZE
from penstock.registry.versions import Version
from penstock.registry.work import compared
from penstock.web.call import Call

QUERY = {**NORMALIZE, "verbose": "also what is wrong"}


def add_to(paths: Paths, registry: Registry) -> None:
    @paths.on(
        "POST",
        "/compatibility/subjects/{subject}/versions/{version}",
        "Whether the schema is compatible with this version.",
        query=QUERY,
        body=BODY,
    )
    async def with_version(call: Call) -> object:
        subject, number = subject_of(registry, call), version_in(call)
        registry.access.check(call, Operation.READ, subject)
        if number == LATEST:
            version = registry.state.latest(subject)
        else:
            version = registry.state.subjects.get(subject, {}).get(number)
            if version is None or version.is_deleted:
                raise version_not_found(number)
        return await answer(call, subject, [] if version is None else [version])

    @paths.on(
        "POST",
        "/compatibility/subjects/{subject}/versions",
        "Whether the schema could be registered now.",
        query=QUERY,
        body=BODY,
    )
    async def with_all(call: Call) -> object:
        subject = subject_of(registry, call)
        registry.access.check(call, Operation.READ, subject)
        return await answer(call, subject, list(registry.state.versions(subject)))

    async def answer(call: Call, subject: str, versions: list[Version]) -> dict[str, Any]:
        candidate = candidate_in(registry, call, subject, await call.json())
        normalize = call.flag("normalize") or registry.config(subject).get("normalize") is True
        is_verbose = call.flag("verbose")
        try:
            lines = await compared(registry, subject, candidate, versions, normalize=normalize)
        except InvalidText as error:
            if not is_verbose:
                raise
            lines = [str(error)]
        document: dict[str, Any] = {"is_compatible": not lines}
        if is_verbose:
            document["messages"] = lines
        return document
