"""The table of routes as an OpenAPI document, and as a page for people that loads nothing from elsewhere."""

from __future__ import annotations

import html
import re
from typing import Any

import penstock
from penstock.web.routes import Route
from penstock.web.service import WebService


def document(service: WebService) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in service.routes:
        if not route.is_hidden:
            paths.setdefault(route.pattern, {})[route.method.lower()] = _operation(service, route)
    return {
        "openapi": "3.1.0",
        "info": {"title": service.title, "version": penstock.__version__},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }


_ERROR = {
    "type": "object",
    "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
}


def _operation(service: WebService, route: Route) -> dict[str, Any]:
    content = route.content or service.content
    names = re.findall(r"\{(\w+)\}", route.pattern)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
    ]
    parameters += [
        {"name": name, "in": "query", "description": words, "schema": {"type": "string"}}
        for name, words in route.query.items()
    ]
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.handler.__name__}_{route.method.lower()}_{len(names)}",
        "parameters": parameters,
        "responses": {
            "200": {"description": "Done.", "content": {media: {} for media in content.offered}},
            "default": {
                "description": "Refused.",
                "content": {
                    media: {"schema": {"$ref": "#/components/schemas/Error"}} for media in content.offered
                },
            },
        },
    }
    if route.body is not None:
        operation["requestBody"] = {
            "description": route.body,
            "content": {media: {} for media in content.accepted},
        }
    return operation


def page(service: WebService) -> str:
    rows = []
    for route in service.routes:
        if route.is_hidden:
            continue
        query = "".join(
            f"<br><code>?{html.escape(name)}</code> {html.escape(words)}"
            for name, words in route.query.items()
        )
        body = f"<br>Body: {html.escape(route.body)}" if route.body else ""
        rows.append(
            f"<tr><td><b>{route.method}</b></td><td><code>{html.escape(route.pattern)}</code></td>"
            f"<td>{html.escape(route.summary)}{query}{body}</td></tr>"
        )
    title = html.escape(service.title)
    return (
        f"<!doctype html><meta charset=utf-8><title>{title}</title>"
        "<style>body{font:15px system-ui;margin:2em auto;max-width:70em}td{padding:.4em .8em;vertical-align:top;"
        "border-top:1px solid #ddd}</style>"
        f"<h1>{title}</h1><p>Version {html.escape(penstock.__version__)}. "
        "<a href=/openapi.json>OpenAPI</a> · <a href=/health>health</a> · <a href=/metrics>metrics</a></p>"
        f"<table>{''.join(rows)}</table>"
    )
