"""Registering, looking up and comparing: what is slow goes into threads, what decides stays on the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.registry.candidates import NO_ID, Candidate
from penstock.registry.content import Content
from penstock.registry.decisions.compare import compared_with, policy_of
from penstock.registry.decisions.decision import Decision
from penstock.registry.decisions.lookup import Found, found_in
from penstock.registry.decisions.metadata import has_defaults, populated
from penstock.registry.decisions.register import check_mode, next_version, register
from penstock.registry.names import DEFAULT_CONTEXT, context_of, joined
from penstock.registry.parsed import Source
from penstock.registry.references import texts_of, with_numbers
from penstock.registry.refusals import STORE_ERROR, InvalidText, Refusal, incompatible, too_large
from penstock.registry.registry import Registry
from penstock.registry.scope import LEVEL, takes_ids
from penstock.registry.state import State
from penstock.registry.versions import Version
from penstock.schemas.compatibility import LENIENT, Existing, check
from penstock.schemas.model import JSON, MAX_TEXT_CHARACTERS, Schema

ATTEMPTS: Final = 10
_POLICY_HINT: Final = (
    ". With compatibilityPolicy=LENIENT in the subject's config it would be compatible: "
    "optional properties may be added then"
)


class _Changed(Exception):
    """What was compared with is not what is there now."""


def known_at_once(registry: Registry, subject: str, candidate: Candidate, *, normalize: bool) -> Found | None:
    """A schema that is registered in just these words: nothing is parsed."""
    if normalize or candidate.id != NO_ID or candidate.version > 0 or not candidate.text:
        return None
    if has_defaults(registry.config(subject)):
        return None
    return found_in(registry.state, subject, candidate.content)


async def registered(
    registry: Registry, subject: str, candidate: Candidate, *, normalize: bool, force: bool
) -> Found:
    """At the leader. NotLeader, Refusal."""
    if len(candidate.text) > MAX_TEXT_CHARACTERS:
        raise too_large()
    async with registry.subject_lock(subject):
        for _ in range(ATTEMPTS):
            try:
                return await _registered(registry, subject, candidate, normalize=normalize, force=force)
            except _Changed:
                continue
    raise Refusal(STORE_ERROR, "The subject and what it refers to change too often at the moment.")


async def _registered(
    registry: Registry, subject: str, candidate: Candidate, *, normalize: bool, force: bool
) -> Found:
    config = registry.config(subject)
    known = await _known(registry, subject, candidate, config, normalize=normalize)
    if known is not None:
        return known
    state = registry.state
    mode = check_mode(state, subject, candidate)
    versions = list(state.versions(subject))
    if not takes_ids(mode):
        candidate = _from_previous(candidate, versions)
        previous = versions[-1].content if versions else None
        candidate = populated(candidate, previous, config, next_version(state, subject))
    candidate, source, schema = await _parsed(registry, subject, candidate, normalize=normalize)
    there = found_in(state, subject, candidate.content)
    if not takes_ids(mode) and there is None:
        lines = await _differences(registry, schema, candidate, [] if force else versions, config)
        if lines:
            lenient = {**config, "compatibilityPolicy": LENIENT}
            is_about_policy = (
                candidate.kind == JSON
                and policy_of(config) != LENIENT
                and not await _differences(registry, schema, candidate, versions, lenient)
            )
            raise incompatible(subject, lines, _POLICY_HINT if is_about_policy else "")
    basis = _basis(state, subject)

    def decide(now: State) -> Decision:
        if _basis(now, subject) != basis or texts_of(now, subject, source.references) != source.texts:
            raise _Changed
        if registry.config(subject) != config or check_mode(now, subject, candidate) != mode:
            raise _Changed
        return register(now, subject, candidate)

    if versions != list(registry.state.versions(subject)):
        raise _Changed
    found: Found = await registry.instance.commit(decide)
    return found


async def _known(
    registry: Registry, subject: str, candidate: Candidate, config: Mapping[str, Any], *, normalize: bool
) -> Found | None:
    """A version that is there already is answered in every mode."""
    if has_defaults(config) or candidate.id != NO_ID or candidate.version > 0 or not candidate.text.strip():
        return None
    if not registry.state.has(subject, deleted=False):
        return None
    canonical, _, _ = await _parsed(registry, subject, candidate, normalize=normalize)
    return found_in(registry.state, subject, canonical.content)


def _basis(state: State, subject: str) -> list[tuple[int, int, bool]]:
    return [(each.number, each.id, each.is_deleted) for each in state.versions(subject, deleted=True)]


def _from_previous(candidate: Candidate, versions: list[Version]) -> Candidate:
    if candidate.text.strip():
        return candidate
    if not versions:
        raise InvalidText("Empty schema")
    content = versions[-1].content
    return candidate._replace(kind=content.kind, text=content.text, references=content.references)


async def _parsed(
    registry: Registry, subject: str, candidate: Candidate, *, normalize: bool
) -> tuple[Candidate, Source, Schema]:
    """The candidate in its canonical form."""
    if not candidate.text.strip():
        raise InvalidText("Empty schema")
    references = with_numbers(registry.state, subject, candidate.references)
    source = Source(candidate.kind, candidate.text, references, texts_of(registry.state, subject, references))
    schema = await registry.parsed.parsed(source, normalize=normalize)
    return candidate._replace(text=schema.text, references=tuple(schema.references)), source, schema


async def looked_up(
    registry: Registry, subject: str, candidate: Candidate, *, normalize: bool, deleted: bool
) -> Found | None:
    """The version that is this schema; a plain name also in other contexts."""
    found = await _looked_up(registry, subject, candidate, normalize=normalize, deleted=deleted)
    if found is None and context_of(subject) == DEFAULT_CONTEXT:
        for context in sorted(registry.state.contexts):
            other = joined(context, subject)
            if registry.state.has(other, deleted=deleted):
                found = await _looked_up(registry, other, candidate, normalize=normalize, deleted=deleted)
                if found is not None:
                    break
    return found


async def _looked_up(
    registry: Registry, subject: str, candidate: Candidate, *, normalize: bool, deleted: bool
) -> Found | None:
    if not normalize:
        found = found_in(registry.state, subject, candidate.content, deleted=deleted)
        if found is not None:
            return found
    if not registry.state.has(subject, deleted=True):
        return None
    candidate, _, _ = await _parsed(registry, subject, candidate, normalize=normalize)
    found = found_in(registry.state, subject, candidate.content, deleted=deleted)
    if found is not None:
        return found
    latest = registry.state.latest(subject)
    if latest is None:
        return None
    richer = populated(candidate, latest.content, registry.config(subject), None)
    return found_in(registry.state, subject, richer.content, deleted=deleted)


async def compared(
    registry: Registry, subject: str, candidate: Candidate, versions: list[Version], *, normalize: bool
) -> list[str]:
    """What is wrong with it as the next version behind these, the lowest number first."""
    config = registry.config(subject)
    candidate, _, schema = await _parsed(registry, subject, candidate, normalize=normalize)
    return await _differences(registry, schema, candidate, versions, config)


async def _differences(
    registry: Registry,
    schema: Schema,
    candidate: Candidate,
    versions: list[Version],
    config: Mapping[str, Any],
) -> list[str]:
    """Also whether it may be a new schema at all: InvalidText."""
    older = [
        (each.number, source_of(registry.state, each.subject, each.content))
        for each in compared_with(candidate, versions, config)
    ]
    parsed = registry.parsed

    def compare() -> list[str]:
        parsed.check_new_now(schema)
        existing = (Existing(number, parsed.parsed_now(source)) for number, source in older)
        return check(
            schema,
            existing,
            config[LEVEL],
            policy=policy_of(config),
            validate_fields=config.get("validateFields") is True,
        )

    return await parsed.run(compare, len(schema.text) + sum(source.size for _, source in older))


def source_of(state: State, subject: str, content: Content) -> Source:
    texts = texts_of(state, subject, content.references)
    return Source(content.kind, content.text, content.references, texts)
