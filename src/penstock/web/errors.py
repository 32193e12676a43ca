"""Refusals of an HTTP service, in the form that Confluent's services have: a status and `{"error_code", "message"}`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus


class HttpError(Exception):
    """Expected, and answered. `error_code` is the status where the service has no finer one."""

    def __init__(
        self,
        status: int,
        message: str | None = None,
        *,
        error_code: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.error_code = status if error_code is None else error_code
        self.message = f"HTTP {status} {HTTPStatus(status).phrase}" if message is None else message
        self.headers = dict(headers or {})
        super().__init__(self.message)

    def document(self) -> dict[str, object]:
        return {"error_code": self.error_code, "message": self.message}


def not_found() -> HttpError:
    return HttpError(404)
