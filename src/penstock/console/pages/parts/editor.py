"""An editor of texts in a language, light or dark as the page is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

from nicegui import ui

from penstock.console.context import PageContext

LIGHT: Final = "basicLight"
DARK: Final = "basicDark"
MAX_WORDS: Final = 3000
_COMPLETE: Final = """
(async () => {
  const parts = await import("nicegui-codemirror");
  const view = getElement(%d)?.editor;
  if (!view) return;
  const isNew = !view.consoleWords;
  view.consoleWords = %s;
  if (!isNew) return;
  const source = (context) => {
    const word = context.matchBefore(/[A-Za-z_][A-Za-z0-9_]*/);
    if (!word && !context.explicit) return null;
    return {from: word ? word.from : context.pos, options: view.consoleWords, validFor: /^[A-Za-z0-9_]*$/};
  };
  const data = parts.EditorState.languageData.of(() => [{autocomplete: source}]);
  view.dispatch({effects: parts.StateEffect.appendConfig.of(data)});
})()
"""
_IS_DARK: Final = "document.body.classList.contains('body--dark')"


def editor(
    context: PageContext,
    text: str,
    *,
    language: str,
    testid: str,
    label: str,
    keys: dict[str, Callable[..., Any]] | None = None,
) -> ui.codemirror:
    found = ui.codemirror(text, language=language, theme=LIGHT, line_wrapping=True, keymap=dict(keys or {}))  # type: ignore[arg-type]
    found.classes("w-full console-card overflow-hidden").props(f'data-testid="{testid}"').mark(testid)
    found.props["aria-label"] = label

    async def dress() -> None:
        try:
            is_dark = await ui.run_javascript(_IS_DARK)
        except TimeoutError:
            return
        if is_dark:
            found.set_theme(DARK)

    ui.timer(0.05, dress, once=True)
    return found


def complete(found: ui.codemirror, words: Iterable[tuple[str, str]]) -> None:
    """What the editor offers while one types, beside the words of its language: words, and of what kind each is."""
    options = [
        {"label": word, "type": "variable", "detail": kind, "boost": 10}
        for word, kind in islice(words, MAX_WORDS)
    ]
    ui.run_javascript(_COMPLETE % (found.id, json.dumps(options)))
