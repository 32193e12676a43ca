"""What went wrong with a statement becomes an answer with ksqlDB's code. Bugs stay what they are."""

from __future__ import annotations

from typing import Final

from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.schema_registry import RegistryRefused
from penstock.model.errors import ErrorCode
from penstock.schemas.model import InvalidSchema
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.engine.entities import Entity
from penstock.sql.engine.refusals import BAD_STATEMENT, FORBIDDEN_KAFKA, SERVER_ERROR, SqlRefused
from penstock.sql.parsing.parser import SyntaxRefused
from penstock.streams.formats.failures import BadRecord, SchemasUnavailable


def refusal_of(error: Exception, statement: str, entities: list[Entity] | None = None) -> SqlRefused:
    """The answer to what went wrong with a statement."""
    done = entities or []
    if isinstance(error, SqlRefused):
        return error
    if isinstance(error, StatementRefused | SyntaxRefused | BadRecord | InvalidSchema):
        return SqlRefused(str(error), statement=statement, entities=done)
    if isinstance(error, SchemasUnavailable) and error.__cause__ is not None:
        # Whether nobody answers, or the registry says no to this schema.
        return refusal_of(_as_known(error.__cause__), statement, done)
    if isinstance(error, RegistryRefused):
        return SqlRefused(str(error), code=_code_of(error), statement=statement, entities=done)
    if isinstance(error, Refused):
        forbidden = error.code in _FORBIDDEN
        return SqlRefused(
            str(error),
            code=FORBIDDEN_KAFKA if forbidden else BAD_STATEMENT,
            statement=statement,
            entities=done,
        )
    if isinstance(error, Unreachable | SchemasUnavailable):
        return SqlRefused(str(error), code=SERVER_ERROR, statement=statement, entities=done)
    if isinstance(error, UserError):
        return SqlRefused(str(error), statement=statement, entities=done)
    raise error


def _as_known(cause: BaseException) -> Exception:
    """What a registry's client does not tell by a class of its own is told as a registry that does not answer."""
    return cause if isinstance(cause, Refused | UserError | Unreachable) else Unreachable(str(cause))


def _code_of(refused: RegistryRefused) -> int:
    if refused.status in (401, 403):
        return FORBIDDEN_KAFKA
    return SERVER_ERROR if refused.status >= 500 else BAD_STATEMENT


_FORBIDDEN: Final = frozenset(code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED"))
