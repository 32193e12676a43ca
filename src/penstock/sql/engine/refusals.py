"""What the server says no with: ksqlDB's codes."""

from __future__ import annotations

from typing import Any, Final

BAD_REQUEST: Final = 40000
BAD_STATEMENT: Final = 40001
WRONG_ENDPOINT: Final = 40002
TOO_MANY_PUSH_QUERIES: Final = 40003
UNAUTHORIZED: Final = 40100
FORBIDDEN: Final = 40300
FORBIDDEN_KAFKA: Final = 40301
NOT_FOUND: Final = 40400
ASSERTION_FAILED: Final = 41700
SERVER_ERROR: Final = 50000

GENERIC: Final = "generic_error"
STATEMENT: Final = "statement_error"


class SqlRefused(Exception):
    """`statement` None: the request itself is at fault. `entities`: what the request's earlier statements did."""

    def __init__(
        self,
        message: str,
        *,
        code: int = BAD_STATEMENT,
        statement: str | None = None,
        entities: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.statement = statement
        self.entities = entities or []

    @property
    def status(self) -> int:
        return self.code // 100

    def document(self) -> dict[str, Any]:
        if self.statement is None:
            return {"@type": GENERIC, "error_code": self.code, "message": self.message}
        return {
            "@type": STATEMENT,
            "error_code": self.code,
            "message": self.message,
            "statementText": self.statement,
            "entities": self.entities,
        }
