"""A schema becomes a version of a subject.

The same schema under the same subject is the version that is there. Under another subject of the context it gets the same id.
Equal to a soft-deleted version, it gets a new number and the same id, and the old version is removed unless it is referred to.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.registry import records
from penstock.registry.candidates import NO_ID, Candidate
from penstock.registry.content import Content
from penstock.registry.decisions.decision import Decision
from penstock.registry.decisions.lookup import Found, found_in
from penstock.registry.names import DEFAULT_CONTEXT, context_of, joined
from penstock.registry.refusals import InvalidText, not_permitted, read_only
from penstock.registry.scope import READWRITE, is_read_only, mode_in_scope, takes_ids
from penstock.registry.state import State
from penstock.registry.versions import Version, gone, value_of


class Basis(NamedTuple):
    """What the comparison with earlier versions depended on: if it has changed, it must be made again."""

    versions: tuple[tuple[int, int, bool], ...]
    config: str
    mode: str


def check_mode(state: State, subject: str, candidate: Candidate) -> str:
    mode = mode_in_scope(state, subject)
    context = joined(context_of(subject), "")
    if is_read_only(mode):
        raise read_only(subject, context)
    if candidate.id != NO_ID and not takes_ids(mode):
        raise not_permitted(f"Subject {subject} in context {context} is not in import mode")
    if candidate.id == NO_ID and mode != READWRITE:
        raise not_permitted(f"Subject {subject} in context {context} is not in read-write mode")
    return mode


def next_version(state: State, subject: str) -> int:
    return max((each.number for each in state.versions(subject, deleted=True)), default=0) + 1


def register(state: State, subject: str, candidate: Candidate) -> Decision:
    """`candidate` is canonical and compatible. The answer is a `Found`."""
    mode = check_mode(state, subject, candidate)
    content = candidate.content
    context = context_of(subject)
    known_id = state.id_of(context, content)
    schema_id = candidate.id
    if known_id is not None and schema_id in (NO_ID, known_id):
        schema_id, content = known_id, state.schemas[context][known_id].content
        if candidate.version <= 0 and (there := found_in(state, subject, content)) is not None:
            return Decision((), there)
    number = next_version(state, subject)
    if candidate.version > 0 and candidate.version != number:
        if not takes_ids(mode):
            raise InvalidText("Version is not one more than previous version")
        number = candidate.version
        there_already = state.subjects.get(subject, {}).get(number)
        if there_already is not None and there_already.content.mark != content.mark:
            raise not_permitted(f"Overwrite version {number} of subject {subject} is not permitted.")
    if schema_id == NO_ID:
        schema_id = state.next_id(context)
    _check_id(state, context, schema_id, content)
    written = []
    if context != DEFAULT_CONTEXT and context not in state.contexts:
        written.append(records.context(context))
    for old in state.versions(subject, deleted_only=True):
        if old.id == schema_id and old.number < number and not state.referrers.get(old.place):
            written += gone(old)
    version = Version(subject, number, schema_id, content)
    written.append(records.Record(records.schema_key(subject, number), value_of(version)))
    return Decision(tuple(written), Found(subject, number, schema_id, content, False, -1))


def _check_id(state: State, context: str, schema_id: int, content: Content) -> None:
    there = state.schemas.get(context, {}).get(schema_id)
    if there is not None and there.content.mark != content.mark:
        raise not_permitted(
            f"Overwrite new schema with id {schema_id} in context {joined(context, '')} is not permitted."
        )
