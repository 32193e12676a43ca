"""Hooks of mkdocs (see mkdocs.yml): pages from files outside docs/, and links to files that the site does not have.

The Markdown files are also read in a checkout, so their links are relative paths. A link to one of PAGES goes to its page of
the site; a link to any other file of the checkout becomes that file's path. A link to nothing is left for mkdocs to refuse.

In `nav`, `folder/*` stands for the pages of that folder that nothing else names.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "bench/RESULTS.md": "project/measurements.md",
    "README.md": "index.md",
}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    named = set(re.findall(r"[\w/-]+\.md", str(config.nav)))
    config.nav = _with_folders(config.nav, named)
    return config


def _with_folders(entries: Any, named: set[str]) -> Any:
    if isinstance(entries, dict):
        return {title: _with_folders(below, named) for title, below in entries.items()}
    if not isinstance(entries, list):
        return entries
    expanded: list[Any] = []
    for entry in entries:
        if isinstance(entry, str) and entry.endswith("/*"):
            pages = sorted(f"{entry[:-2]}/{path.name}" for path in (ROOT / "docs" / entry[:-2]).glob("*.md"))
            expanded += [page for page in pages if page not in named]
        else:
            expanded.append(_with_folders(entry, named))
    return expanded


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for source, page in PAGES.items():
        if page != "index.md":
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files, **_: Any) -> str:
    origins = {page: source for source, page in PAGES.items() if page != "index.md"}
    uri = page.file.src_uri
    folder = posixpath.dirname(origins.get(uri, f"docs/{uri}"))

    def on_the_site(link: re.Match[str]) -> str:
        text, target, anchor = link.group(1), link.group(2), link.group(3) or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in PAGES:
            there = PAGES[path]
        elif path.startswith("docs/") and (ROOT / path).is_file():
            there = path.removeprefix("docs/")
        elif path == "docs/decisions":
            there = "decisions/index.md"
        elif not path.startswith("..") and (ROOT / path).exists():
            return f"{text} (`{path}`)" if path not in text.replace("`", "") else f"`{path}`"
        else:
            return link.group(0)
        return f"[{text}]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{anchor})"

    return LINK.sub(on_the_site, markdown)
