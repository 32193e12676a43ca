"""Subjects and contexts: `:.context:subject` is a subject in a context, a plain name is one in the default context."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
"""Has no subjects: its config and mode count where no others do."""
GLOBAL_SUBJECT: Final = ":.__GLOBAL:"
ANY_CONTEXT: Final = ":*:"
RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})
MAX_SUBJECT_CHARACTERS: Final = 4096

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Name(NamedTuple):
    context: str
    subject: str
    """Empty: the context itself."""


def parsed(name: str) -> Name:
    if name.startswith(":."):
        context, _, subject = name[1:].partition(":")
        return Name(context, subject)
    if name.startswith(ANY_CONTEXT):
        return Name("*", name[len(ANY_CONTEXT) :])
    return Name(DEFAULT_CONTEXT, name)


def joined(context: str, subject: str) -> str:
    return subject if context == DEFAULT_CONTEXT else f":{context}:{subject}"


def normalized(name: str) -> str:
    """The one form of a name: without the default context."""
    return joined(*parsed(name)) if name.startswith(":") else name


def context_of(name: str) -> str:
    return parsed(name).context if name.startswith(":") else DEFAULT_CONTEXT


def context_named(text: str) -> str:
    """`ctx`, `.ctx` and `:.ctx:` are one. ValueError for what cannot be a context."""
    bare = text.removeprefix(":").removesuffix(":")
    if ":" in bare or _CONTROL.search(bare):
        raise ValueError(f"Context name '{bare}' cannot contain a colon")
    return bare if bare.startswith(".") else f".{bare}"


def beside(parent: str, name: str) -> str:
    """A name in a schema of `parent`: without a context of its own it is in the parent's."""
    context, subject = parsed(name)
    return joined(context_of(parent) if context == DEFAULT_CONTEXT else context, subject)


def is_valid_subject(name: str, *, is_context_allowed: bool = False) -> bool:
    if len(name) > MAX_SUBJECT_CHARACTERS or _CONTROL.search(name) or _SURROGATE.search(name):
        return False
    context, subject = parsed(name)
    if not subject:
        return is_context_allowed
    return context != "*" and context != GLOBAL_CONTEXT and subject not in RESERVED


def is_in(scope: str | None, name: str) -> bool:
    """Whether a subject is the scope, or in the context that the scope is. None and the global context are everything."""
    if scope in (None, name, GLOBAL_SUBJECT):
        return True
    context, subject = parsed(scope or "")
    return not subject and context_of(name) == context
