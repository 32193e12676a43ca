"""Soft and hard deletes of subjects and versions, and the end of empty contexts.

Soft: it is not shown any more, ids still lead to the schema, and it can be registered again. Hard: only what has been deleted
softly before; its records are removed from the topic. What others refer to stays.
"""

from __future__ import annotations

from penstock.registry import records
from penstock.registry.decisions.decision import Decision
from penstock.registry.decisions.lookup import version_of
from penstock.registry.names import context_of, joined
from penstock.registry.records import Record
from penstock.registry.refusals import (
    context_not_empty,
    read_only,
    referred_to,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_soft_deleted,
    version_soft_deleted,
)
from penstock.registry.scope import is_read_only, mode_in_scope
from penstock.registry.state import State
from penstock.registry.versions import gone, value_of


def delete_subject(state: State, subject: str, *, permanent: bool) -> Decision:
    """The answer is the list of versions."""
    if not state.has(subject, deleted=True):
        raise subject_not_found(subject)
    if not permanent and not state.has(subject, deleted=False):
        raise subject_soft_deleted(subject)
    _check_writable(state, subject)
    versions = list(state.versions(subject, deleted=permanent))
    for version in versions:
        referrers = (
            state.referrers.get(version.place, ()) if permanent else state.live_referrers(version.place)
        )
        if any(place[0] != subject for place in referrers):
            raise referred_to(*version.place)
        if permanent and not version.is_deleted:
            raise subject_not_soft_deleted(subject)
    numbers = [version.number for version in versions]
    if not permanent:
        return Decision((records.deleted_subject(subject, numbers[-1]),), numbers)
    written = [_highest_ids(state)]
    for version in reversed(versions):
        written += gone(version)
    written += _settings_gone(state, subject)
    return Decision(tuple(written), numbers)


def delete_version(state: State, subject: str, number: int, *, permanent: bool) -> Decision:
    """The answer is the version's number."""
    version = version_of(state, subject, number, deleted=True)
    if not permanent and version.is_deleted:
        raise version_soft_deleted(subject, version.number)
    _check_writable(state, subject)
    referrers = state.referrers.get(version.place, ()) if permanent else state.live_referrers(version.place)
    if any(True for _ in referrers):
        raise referred_to(*version.place)
    if permanent and not version.is_deleted:
        raise version_not_soft_deleted(subject, version.number)
    if not permanent:
        key = records.schema_key(subject, version.number)
        return Decision((Record(key, value_of(version, is_deleted=True)),), version.number)
    written = [_highest_ids(state), *gone(version)]
    if len(state.subjects[subject]) == 1:
        written += _settings_gone(state, subject)
    return Decision(tuple(written), version.number)


def delete_context(state: State, context: str) -> Decision:
    if any(context_of(subject) == context for subject in state.subjects):
        raise context_not_empty(joined(context, ""))
    if context not in state.contexts:
        return Decision((), None)
    return Decision((_highest_ids(state), records.context(context, is_deleted=True)), None)


def _check_writable(state: State, subject: str) -> None:
    if is_read_only(mode_in_scope(state, subject)):
        raise read_only(subject, joined(context_of(subject), ""))


def _highest_ids(state: State) -> Record:
    """Before the last record with an id goes: the id is not given again."""
    return records.noop(state.max_ids)


def _settings_gone(state: State, subject: str) -> list[Record]:
    gone = []
    if subject in state.modes:
        gone.append(records.mode(subject, None))
    if subject in state.configs:
        gone.append(records.config(subject, None))
    return gone
