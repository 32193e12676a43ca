"""/schemas: by id, by GUID, and all of them."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from penstock.model.acl import Operation
from penstock.registry.decisions.lookup import Found
from penstock.registry.decisions.lookup import found as found_version
from penstock.registry.names import ANY_CONTEXT, DEFAULT_CONTEXT, beside, context_of, joined, parsed
from penstock.registry.refusals import schema_not_found
from penstock.registry.registry import Registry
from penstock.registry.routes.paths import (
    DELETED,
    LIST_QUERY,
    REFERENCES,
    Paths,
    formatted,
    in_context,
    portion,
    version_document,
    wants_new_fields,
    with_references,
)
from penstock.registry.routes.subjects import subjects_with_prefix
from penstock.registry.state import State
from penstock.registry.versions import Place, Schema
from penstock.schemas.model import KINDS
from penstock.web.call import Answer, Call

SLICE: Final = 200
"""Subjects or schemas that are looked at in one turn of the loop."""
SUBJECT: Final = {"subject": "a subject whose context is meant"}


def add_to(paths: Paths, registry: Registry) -> None:
    @paths.on("GET", "/schemas/types", "The kinds of schemas.")
    async def types(call: Call) -> list[str]:
        return list(KINDS)

    @paths.on(
        "GET",
        "/schemas",
        "All versions of all subjects.",
        query={
            "subjectPrefix": "only subjects that begin so",
            **DELETED,
            "latestOnly": "only the newest of each",
            "aliases": "also subjects whose aliases begin so, each with its aliases",
            "ruleType": "only those with rules of these types",
            **LIST_QUERY,
        },
    )
    async def schemas(call: Call) -> list[dict[str, Any]]:
        prefix = call.query("subjectPrefix") or ("" if "context" in call.values else ANY_CONTEXT)
        types = set(call.queries("ruleType"))
        deleted, latest = call.flag("deleted"), call.flag("latestOnly")
        found = []
        names = subjects_with_prefix(registry.state, in_context(call, prefix))
        aliases = _aliases(registry.state, in_context(call, prefix)) if call.flag("aliases") else {}
        names += sorted(name for name in aliases.keys() - set(names) if name in registry.state.subjects)
        for number, name in enumerate(names, 1):
            if number % SLICE == 0:
                await asyncio.sleep(0)  # others have their turn
            if not registry.access.allows(call, Operation.READ, name):
                continue
            versions = list(registry.state.versions(name, deleted=deleted))
            for version in versions[-1:] if latest else versions:
                if not types or types & _rule_types(version.content.rule_set):
                    found.append(version)
        options = registry.options
        limits = options["schema.search.default.limit"], options["schema.search.max.limit"]
        shown = portion(call, found, default=limits[0], highest=limits[1])
        documents = [await version_document(registry, call, found_version(version)) for version in shown]
        for document in documents:
            if document["subject"] in aliases:
                document["aliases"] = aliases[document["subject"]]
        return documents

    @paths.on(
        "GET",
        "/schemas/ids/{id}",
        "The schema with this id.",
        query={
            **SUBJECT,
            "format": "form of the schema in the answer",
            **REFERENCES,
            "fetchMaxId": "also the highest id",
            "includeSubjects": "also the subjects that have it, as Karapace's clients ask",
        },
    )
    async def by_id(call: Call) -> dict[str, Any]:
        context, schema = found_by(call)
        place = _place_of(registry.state, schema, in_context(call, call.query("subject") or ""))
        document = with_references(call, place.subject, schema.content.document())
        form = call.query("format")
        if form and form.strip():
            document["schema"] = await formatted(registry, _first(registry.state, schema), form.strip())
        if call.flag("fetchMaxId"):
            document["maxId"] = registry.state.max_ids.get(context, 0)
        if call.flag("includeSubjects"):
            document["subjects"] = list(dict.fromkeys(name for name, _ in places_of(call)))
        if wants_new_fields(call):
            if call.query("subject") is not None:
                document |= {"subject": place.subject, "version": place.version}
            document |= place.more()
        return document

    @paths.on("GET", "/schemas/ids/{id}/schema", "The schema with this id and nothing else.", query=SUBJECT)
    async def text(call: Call) -> Answer:
        _, schema = found_by(call)
        form = (call.query("format") or "").strip()
        if form:
            return Answer((await formatted(registry, _first(registry.state, schema), form)).encode())
        return Answer(schema.content.text.encode())

    @paths.on(
        "GET",
        "/schemas/ids/{id}/subjects",
        "The subjects that have the schema.",
        query={**SUBJECT, **DELETED, **LIST_QUERY},
    )
    async def subjects(call: Call) -> list[str]:
        return portion(call, list(dict.fromkeys(name for name, _ in places_of(call))))

    @paths.on(
        "GET",
        "/schemas/ids/{id}/versions",
        "The versions that are the schema.",
        query={**SUBJECT, **DELETED, **LIST_QUERY},
    )
    async def versions(call: Call) -> list[dict[str, Any]]:
        return [{"subject": name, "version": number} for name, number in portion(call, places_of(call))]

    def places_of(call: Call) -> list[Place]:
        _, schema = found_by(call)
        deleted, wanted = call.flag("deleted"), parsed(call.query("subject") or "").subject
        return [
            (name, number)
            for name, number in sorted(schema.places)
            if (deleted or not registry.state.subjects[name][number].is_deleted)
            and (not wanted or parsed(name).subject == wanted)
        ]

    def found_by(call: Call) -> tuple[str, Schema]:
        schema_id = call.path_number("id")
        state = registry.state
        named = in_context(call, call.query("subject") or "")
        context, subject = parsed(named)
        schema = state.schemas.get(context, {}).get(schema_id)
        if schema is None and context == DEFAULT_CONTEXT and subject:
            for context in sorted(state.contexts):
                other = state.schemas.get(context, {}).get(schema_id)
                if other is not None and any(name == joined(context, subject) for name, _ in other.places):
                    schema = other
                    break
        if schema is None:
            raise schema_not_found(schema_id)
        check_readable(call, schema)
        return context, schema

    def check_readable(call: Call, schema: Schema) -> None:
        """Who may read one of the subjects that have it may read it."""
        access = registry.access
        if access.is_on:
            names = dict.fromkeys(name for name, _ in schema.places)
            if not any(access.allows(call, Operation.READ, name) for name in names):
                access.check(call, Operation.READ, next(iter(names)))

    @paths.on("GET", "/schemas/guids/{guid}", "The schema with this GUID.", query={"format": "its form"})
    async def by_guid(call: Call) -> dict[str, Any]:
        _, _, schema = (await found_by_guid(call))[0]
        document = schema.content.document()
        form = (call.query("format") or "").strip()
        if form:
            document["schema"] = await formatted(registry, _first(registry.state, schema), form)
        document["guid"] = schema.content.guid
        return document

    @paths.on("GET", "/schemas/guids/{guid}/ids", "The ids of the schema with this GUID, by context.")
    async def ids_of_guid(call: Call) -> list[dict[str, Any]]:
        return [{"context": context, "id": number} for context, number, _ in await found_by_guid(call)]

    async def found_by_guid(call: Call) -> list[tuple[str, int, Schema]]:
        wanted = call["guid"].lower()
        every = [
            (context, number, schema)
            for context, schemas in registry.state.schemas.items()
            for number, schema in schemas.items()
        ]
        found = []
        for counted, one in enumerate(every, 1):
            if guid_of(one[2]) == wanted:
                found.append(one)
            if counted % SLICE == 0:
                await asyncio.sleep(0)
        if not found:
            raise schema_not_found(call["guid"])
        check_readable(call, found[0][2])
        return found

    def guid_of(schema: Schema) -> str:
        if schema.guid is None:
            schema.guid = schema.content.guid
        return schema.guid


def _place_of(state: State, schema: Schema, named: str) -> Found:
    """The version that the schema is in this subject: the newest of them; the first one in any where it is in no such subject."""
    numbers = [number for name, number in schema.places if name == named]
    return found_version(state.subjects[named][max(numbers)]) if numbers else _first(state, schema)


def _aliases(state: State, prefix: str) -> dict[str, list[str]]:
    """The aliases that begin so, by the subjects for which they stand."""
    found: dict[str, list[str]] = {}
    context, begin = parsed(prefix)
    for name, config in state.configs.items():
        alias = config.get("alias")
        if name is None or not isinstance(alias, str) or not alias:
            continue
        if context in ("*", context_of(name)) and parsed(name).subject.startswith(begin):
            found.setdefault(beside(name, alias), []).append(name)
    return {subject: sorted(names) for subject, names in found.items()}


def _first(state: State, schema: Schema) -> Found:
    name, number = next(iter(schema.places))
    return found_version(state.subjects[name][number])


def _rule_types(rule_set: Any) -> set[str]:
    return {
        str(rule.get("type"))
        for rules in (rule_set or {}).values()
        if isinstance(rules, list)
        for rule in rules
    }
