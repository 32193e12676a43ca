"""What the registry refuses, by Confluent's codes and in Confluent's words: clients and people look for them."""

from __future__ import annotations

from typing import Final

NOT_PERMITTED: Final = 42205
INVALID_SCHEMA: Final = 42201
STORE_ERROR: Final = 50001
TIMEOUT: Final = 50002
FORWARDING_FAILED: Final = 50003
NO_LEADER: Final = 50004


class Refusal(Exception):
    """Answered with a status of which the code begins with the digits; `code` may be the status itself."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        return self.code if self.code < 1000 else self.code // 100


class InvalidText(Refusal):
    """The schema itself is wrong: a check of compatibility can say so in its messages."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_SCHEMA, message)


def subject_not_found(subject: str) -> Refusal:
    return Refusal(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> Refusal:
    return Refusal(40402, f"Version {version} not found.")


def schema_not_found(what: int | str | None = None) -> Refusal:
    return Refusal(40403, "Schema not found" if what is None else f"Schema {what} not found")


def subject_soft_deleted(subject: str) -> Refusal:
    return Refusal(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> Refusal:
    return Refusal(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_own_compatibility(subject: str) -> Refusal:
    return Refusal(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_own_mode(subject: str) -> Refusal:
    return Refusal(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, details: list[str], hint: str = "") -> Refusal:
    """The code is the status, as Confluent's registry had it for ten years; since December 2025 it has 40901."""
    return Refusal(
        409,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
        f"details: [{', '.join(details)}]{hint}",
    )


def invalid_version(version: str) -> Refusal:
    return Refusal(
        42202,
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_compatibility() -> Refusal:
    return Refusal(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive",
    )


def invalid_mode(
    message: str = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
) -> Refusal:
    return Refusal(42204, message)


def not_permitted(message: str) -> Refusal:
    return Refusal(NOT_PERMITTED, message)


def read_only(subject: str, context: str) -> Refusal:
    return not_permitted(f"Subject {subject} in context {context} is in read-only mode")


def referred_to(subject: str, version: int) -> Refusal:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return Refusal(42206, f"One or more references exist to the schema {key}.")


def invalid_subject(subject: str) -> Refusal:
    return Refusal(42208, f"The specified subject '{subject}' is not a valid.")


def too_large() -> Refusal:
    return Refusal(42209, "Register operation failed because schema is too large")


def invalid_rule_set(why: str) -> Refusal:
    return Refusal(42210, f"Invalid rule set: {why}")


def context_not_empty(context: str) -> Refusal:
    return Refusal(42211, f"The specified context '{context}' is not empty.")


def unknown_leader() -> Refusal:
    return Refusal(NO_LEADER, "Leader not known.")


def not_allowed(principal: str, operation: str, what: str) -> Refusal:
    return Refusal(40301, f"{principal} is denied operation {operation} on {what}")
