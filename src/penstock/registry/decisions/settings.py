"""Configs and modes: of a subject, of a context, of everything (None)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.registry import records
from penstock.registry.candidates import checked_metadata, checked_rule_set
from penstock.registry.decisions.decision import Decision
from penstock.registry.names import GLOBAL_SUBJECT, context_of, is_in, joined, parsed
from penstock.registry.records import Record
from penstock.registry.refusals import (
    Refusal,
    invalid_compatibility,
    invalid_mode,
    not_permitted,
    read_only,
    referred_to,
    subject_not_found,
)
from penstock.registry.scope import FORWARD, IMPORT, LEVEL, MODES, is_read_only, mode_in_scope
from penstock.registry.state import State
from penstock.registry.versions import gone
from penstock.schemas.compatibility import LEVELS, POLICIES

_STRINGS: Final = ("alias", "aliasForDeks", "compatibilityGroup")
_BOOLEANS: Final = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_DOCUMENTS: Final = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")
CONFIG_FIELDS: Final = (*_STRINGS, *_BOOLEANS, LEVEL, "compatibilityPolicy", *_DOCUMENTS)


def set_config(state: State, subject: str | None, body: Any) -> Decision:
    """Fields that the request does not have stay; null takes one away. The answer is what was asked for."""
    _check_writable(state, subject)
    asked = _asked_config(body)
    config = {**state.configs.get(subject, {})}
    for name, value in asked.items():
        if value is None:
            config.pop(name, None)
        else:
            config[name] = value
    ordered: dict[str, Any] = {name: config.pop(name) for name in CONFIG_FIELDS if name in config}
    answer = {("compatibility" if name == LEVEL else name): value for name, value in asked.items()}
    return Decision((records.config(subject, {**ordered, **config}),), answer)


def delete_config(state: State, subject: str | None, default_level: str) -> Decision:
    """The answer is what there was."""
    found = state.configs.get(subject)
    if found is None and subject is not None:
        raise subject_not_found(subject)
    _check_writable(state, subject)
    answer = {LEVEL: default_level, **(found or {})}
    if found is None:
        return Decision((), answer)
    written = [records.config(subject, None)]
    if subject is None:
        written.append(Record(records.former_global_key(records.CONFIG), None))
    return Decision(tuple(written), answer)


def set_mode(state: State, subject: str | None, body: Any, *, force: bool) -> Decision:
    name = _asked_mode(body)
    if name == FORWARD and subject not in (None, GLOBAL_SUBJECT):
        raise invalid_mode("Forward mode only supported on global level")
    written: list[Record] = []
    if name == IMPORT and mode_in_scope(state, subject) != IMPORT and not force:
        written = _emptied(state, subject)
    written.append(records.mode(subject, name))
    return Decision(tuple(written), {"mode": name})


def delete_mode(state: State, subject: str | None, *, recursive: bool) -> Decision:
    found = state.modes.get(subject)
    if found is None and not recursive and subject is not None:
        raise subject_not_found(subject)
    gone: list[str | None] = [subject] if found is not None else []
    if recursive and (subject is None or not parsed(subject).subject):
        gone += [
            name for name in state.modes if name is not None and name != subject and is_in(subject, name)
        ]
    written = [records.mode(name, None) for name in gone]
    if subject is None and written:
        written.append(Record(records.former_global_key(records.MODE), None))
    answer = {"mode": found if found is not None else mode_in_scope(state, subject)}
    return Decision(tuple(written), answer)


def _emptied(state: State, subject: str | None) -> list[Record]:
    """What was deleted softly would be in the way of imported versions."""
    names = [name for name in state.subjects if is_in(subject, name)]
    if any(state.has(name, deleted=False) for name in names):
        raise not_permitted("Cannot import since found existing subjects")
    written: list[Record] = []
    for name in names:
        for version in state.versions(name, deleted=True):
            if state.referrers.get(version.place):
                raise referred_to(*version.place)
            written += gone(version)
    if written:
        written.insert(0, records.noop(state.max_ids))
    return [*written, records.cleared_subject(subject)]


def _check_writable(state: State, subject: str | None) -> None:
    if is_read_only(mode_in_scope(state, subject)):
        context = "" if subject is None else joined(context_of(subject), "")
        raise read_only(str(subject), context)


def _asked_mode(body: Any) -> str | None:
    """None takes the mode away: the request says so with a null. One that says nothing of a mode is refused."""
    name = body.get("mode", 0) if isinstance(body, dict) else 0
    if name is None:
        return None
    if not isinstance(name, str) or name.upper() not in MODES:
        raise invalid_mode()
    return name.upper()


def _asked_config(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise Refusal(400, "The body must be a JSON object with the field compatibility.")
    asked: dict[str, Any] = {}
    for name in CONFIG_FIELDS:
        key = "compatibility" if name == LEVEL and "compatibility" in body else name
        if key not in body:
            continue
        value = body[key]
        if value is not None:
            value = _checked(name, value)
        asked[name] = value
    return asked


def _checked(name: str, given: Any) -> Any:
    value: Any = given
    if name == LEVEL:
        if not isinstance(value, str) or value.upper() not in LEVELS:
            raise invalid_compatibility()
        return value.upper()
    if name == "compatibilityPolicy":
        if not isinstance(value, str) or value.upper() not in POLICIES:
            raise Refusal(42203, f"Invalid compatibility policy. Valid values are {', '.join(POLICIES)}")
        return value.upper()
    if name == "validateFields" and value is True:
        raise not_permitted(
            "validateFields=true cannot be set: this registry does not compare fields with reserved names"
        )
    kind: type = str if name in _STRINGS else bool if name in _BOOLEANS else dict
    if not isinstance(value, kind):
        raise Refusal(400, f"{name}: must be a {'string' if kind is str else kind.__name__}.")
    if name.endswith("RuleSet"):
        checked_rule_set(given)
    elif name.endswith("Metadata"):
        checked_metadata(given)
    return value
