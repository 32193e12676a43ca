"""For the site (see mkdocs.yml): the examples in docstrings become blocks of code.

Docstrings are read as Markdown, and to Markdown `>>>` is three quotations, one in the other. An example goes from its first
`>>>` to the next empty line, as doctest has it.
"""

from itertools import groupby
from typing import Any

import griffe


class Examples(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_blocks(obj.docstring.value)


def with_blocks(docstring: str) -> str:
    """
    >>> with_blocks("One.\\n\\n>>> 1 + 1\\n2")
    'One.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    lines: list[str] = []
    for _, paragraph in groupby(docstring.split("\n"), key=lambda line: bool(line.strip())):
        kept = list(paragraph)
        is_example = kept[0].lstrip().startswith(">>>")
        lines += ["```pycon", *kept, "```"] if is_example else kept
    return "\n".join(lines)
