"""Paths, each also behind `/contexts/{context}`; and what handlers take out of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from penstock.model.acl import Operation
from penstock.registry.candidates import Candidate, candidate_of
from penstock.registry.decisions.lookup import Found
from penstock.registry.names import (
    DEFAULT_CONTEXT,
    beside,
    context_named,
    context_of,
    is_valid_subject,
    joined,
    normalized,
    parsed,
)
from penstock.registry.refusals import Refusal, invalid_subject, invalid_version
from penstock.registry.registry import Registry
from penstock.registry.work import source_of
from penstock.web.call import INT_MAX, Call
from penstock.web.routes import NO_QUERY, Handler, Routes

T = TypeVar("T")
LATEST: Final = -1
NEW_FIELDS: Final = "Confluent-Accept-Unknown-Properties"
LIST_QUERY: Final = {"offset": "how many are left out at the beginning", "limit": "how many at most"}
DELETED: Final = {"deleted": "also soft-deleted ones"}
REFERENCES: Final = {"referenceFormat": "qualified: subjects that are referred to with their context"}


class Paths:
    def __init__(self) -> None:
        self.routes = Routes()

    def on(
        self,
        method: str,
        pattern: str,
        summary: str,
        *,
        query: Mapping[str, str] = NO_QUERY,
        body: str | None = None,
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self.routes.add(method, pattern, handler, summary, query=query, body=body)
            self.routes.add(
                method,
                f"/contexts/{{context}}{pattern}",
                handler,
                summary,
                query=query,
                body=body,
                is_hidden=True,
            )
            return handler

        return declare


def context_in(call: Call) -> str | None:
    """That of the path; None: there is none."""
    named = call.values.get("context")
    if named is None:
        return None
    try:
        return context_named(named)
    except ValueError as error:
        raise Refusal(400, str(error)) from None


def in_context(call: Call, name: str) -> str:
    """A name without a context of its own is in that of the path."""
    context = context_in(call)
    if context is not None and not name.startswith((":.", ":*:")):
        name = joined(context, name)
    return normalized(name)


def subject_of(registry: Registry, call: Call, *, is_valid: bool = False) -> str:
    """The subject that the path names, or that its alias stands for. `is_valid`: it is to be written to."""
    subject = in_context(call, call["subject"])
    if is_valid and not is_valid_subject(subject):
        raise invalid_subject(subject)
    alias = registry.state.configs.get(subject, {}).get("alias")
    if isinstance(alias, str) and alias:
        subject = normalized(joined(parsed(subject).context, alias) if not alias.startswith(":") else alias)
    return subject


def settings_scope(call: Call, *, is_valid: bool = False) -> str | None:
    """The subject or context of a config or mode; None: everything."""
    named = call.values.get("subject", "")
    scope = in_context(call, named)
    if is_valid and not is_valid_subject(scope, is_context_allowed=True):
        raise invalid_subject(scope)
    context, subject = parsed(scope)
    if not subject and context == ".":
        return None
    return scope


def version_in(call: Call) -> int:
    text = call["version"].strip().lower()
    if text in ("latest", "-1"):
        return LATEST
    if not text.isascii() or not text.isdigit() or len(text) > 10 or not 1 <= int(text) <= INT_MAX:
        raise invalid_version(call["version"])
    return int(text)


def portion(
    call: Call, found: Sequence[T], *, default: int | None = None, highest: int | None = None
) -> list[T]:
    """`offset` and `limit`; without a limit, or with a negative one, it is all."""
    offset, limit = max(0, call.number("offset", 0)), call.number("limit", -1)
    if limit <= 0 or (highest is not None and limit > highest):
        return list(islice(found, offset, None if default is None else offset + default))
    return list(islice(found, offset, offset + limit))


def candidate_in(registry: Registry, call: Call, subject: str, body: Any) -> Candidate:
    """The schema of a request. What it refers to must be readable, too: a refusal would tell of it."""
    candidate = candidate_of(body)
    if registry.access.is_on:
        for reference in candidate.references:
            registry.access.check(call, Operation.READ, beside(subject, reference.subject))
    return candidate


def wants_new_fields(call: Call) -> bool:
    return call.header(NEW_FIELDS).lower() == "true"


async def version_document(registry: Registry, call: Call, found: Found) -> dict[str, Any]:
    """In the form that the client asks for."""
    document = with_references(call, found.subject, found.document())
    form = (call.query("format") or "").strip()
    if form:
        document["schema"] = await formatted(registry, found, form)
    if wants_new_fields(call):
        document |= found.more()
    return document


def with_references(call: Call, subject: str, document: dict[str, Any]) -> dict[str, Any]:
    """As Confluent has it: subjects outside the default context only."""
    references = document.get("references")
    if references and call.query("referenceFormat") == "qualified" and context_of(subject) != DEFAULT_CONTEXT:
        document["references"] = [
            {**each, "subject": beside(subject, each["subject"])} for each in references
        ]
    return document


async def formatted(registry: Registry, found: Found, form: str) -> str:
    source = source_of(registry.state, found.subject, found.content)
    schema = await registry.parsed.parsed(source, normalize=False)
    return await registry.parsed.run(lambda: schema.formatted(form), source.size)


def readable(registry: Registry, call: Call, operation: Operation, names: Sequence[str]) -> list[str]:
    """Those that this client may see."""
    if not registry.access.is_on:
        return list(names)
    return [name for name in names if registry.access.allows(call, operation, name)]
