"""NiceGUI's own page with a nonce at each of its scripts, so that the policy of the pages needs no `unsafe-inline` for scripts.

The template's source is changed before it is compiled. What is put into the page later gets no nonce: a script that came with
data, if ever one did, would not run.
"""

from __future__ import annotations

import re
from typing import Any, Final

import jinja2
from nicegui import client

from penstock.console.gate import NONCE

_SCRIPT: Final = re.compile(r"<script(?=[\s>])")
_MARK: Final = f"<script nonce=\"{{{{ request.scope['{NONCE}'] }}}}\""


def give_nonces() -> None:
    environment = client.templates.env
    found = environment.loader
    assert found is not None
    if not isinstance(found, _WithNonces):
        environment.loader = _WithNonces(found)
        if environment.cache is not None:
            environment.cache.clear()


def head(static_path: str) -> str:
    return (
        f'<link rel="stylesheet" href="{static_path}/look.css">'
        f'<script defer src="{static_path}/keys.js"></script>'
    )


class _WithNonces(jinja2.BaseLoader):
    def __init__(self, loader: jinja2.BaseLoader) -> None:
        self._loader = loader

    def get_source(self, environment: jinja2.Environment, template: str) -> Any:
        source, name, is_fresh = self._loader.get_source(environment, template)
        return _SCRIPT.sub(_MARK, source), name, is_fresh
