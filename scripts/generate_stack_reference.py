"""Writes deploy/penstock.schema.json, for editors, and docs/reference/stack-file.md from the table that checks `penstock.yaml`.

python scripts/generate_stack_reference.py           writes them
python scripts/generate_stack_reference.py --check   fails where they are not what the table says
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from penstock.stack.description.forms import Entry, Form, Listing, Named, Options, Section, YesNo  # noqa: E402
from penstock.stack.description.json_schema import json_schema  # noqa: E402
from penstock.stack.description.table import root  # noqa: E402
from penstock.stack.services import SERVICES  # noqa: E402

SCHEMA = ROOT / "deploy" / "penstock.schema.json"
PAGE = ROOT / "docs" / "reference" / "stack-file.md"
INTRO = """<!-- Written by scripts/generate_stack_reference.py from the table that checks the file; do not edit. -->
# penstock.yaml

What may stand in the file of a stack, which [`penstock up --file`](../how-to/stack.md) starts. All of it may be left out but one
word. Paths begin at the folder of the file. Names that begin with `x-` are yours: for YAML's anchors.

The same as JSON Schema for editors is in [deploy/penstock.schema.json](../../deploy/penstock.schema.json). `penstock up --schema`
prints it, too.
"""


def rows(section: Section, path: str = "") -> Iterator[tuple[str, Entry]]:
    """Every name that may stand in the file, in order."""
    for entry in section.entries:
        name = f"{path}{entry.name}"
        yield name, entry
        yield from below(entry.form, name)


def below(form: Form, name: str) -> Iterator[tuple[str, Entry]]:
    match form:
        case Section():
            yield from rows(form, f"{name}.")
        case Named():
            yield from below(form.of, f"{name}.NAME")
        case Listing():
            yield from below(form.of, f"{name}[]")


def kind(form: Form) -> str:
    match form:
        case Section():
            return "names, or nothing for all defaults" if form.is_switch else "names"
        case Named():
            return "names of your own"
        case Listing():
            return "list"
        case Options():
            return "names and values"
        case YesNo():
            return "true or false"
    found = form.schema()
    if "enum" in found:
        return " or ".join(map(str, found["enum"]))
    if found["type"] == "integer":
        return f"{found['minimum']} to {found['maximum']}"
    return "text"


def page() -> str:
    lines = [INTRO, "| Name | Value | Default | |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {kind(entry.form)} | {entry.default} | {entry.doc} |".replace("|  |", "| |")
        for name, entry in rows(root(SERVICES))
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    texts = {SCHEMA: json.dumps(json_schema(SERVICES), indent=2, ensure_ascii=False) + "\n", PAGE: page()}
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    if "--check" not in sys.argv:
        for path in stale:
            path.write_text(texts[path])
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what the table says: python {sys.argv[0]}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
