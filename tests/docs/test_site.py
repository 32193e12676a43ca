"""The site builds without a warning, and takes nothing from the network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

# What a browser would load by itself; links that a reader may follow are something else.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//|<link[^>]*\shref=["']?(?:https?:)?//|url\(["']?https?://"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        # Not with --quiet: then a warning is not seen, and not counted by --strict either.
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=ROOT,
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "http_proxy": "http://127.0.0.1:9",  # where nobody answers
            "https_proxy": "http://127.0.0.1:9",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return target


def test_a_link_that_leads_nowhere_would_be_an_error(site: Path) -> None:
    config = (ROOT / "mkdocs.yml").read_text()
    assert re.findall(r"^  (\w+): (?:warn)$", config, re.MULTILINE) == [
        "omitted_files", "absolute_links", "unrecognized_links", "anchors",
    ]  # fmt: skip
    assert "strict: true" in config


def test_a_browser_loads_nothing_from_elsewhere(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css", ".svg")]
    assert len(files) > 40
    assert [str(path) for path in files if LOADED.search(path.read_text(encoding="utf-8"))] == []


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).is_file()] == []


def test_the_python_api_is_there_with_its_docstrings(site: Path) -> None:
    page = (site / "reference" / "python" / "consumer.html").read_text()
    assert "penstock.consumer.Processor" in page
    assert "at-least-once" in page


def test_examples_in_docstrings_are_blocks_of_code(site: Path) -> None:
    page = (site / "reference" / "python" / "admin.html").read_text()
    assert page.count('<code><span class="gp">') > 20
    assert not re.search(r"<blockquote>\s*<blockquote>", page)


def test_the_front_page_shows_a_run_of_the_demo(site: Path) -> None:
    assert "pictures/demo.svg" in (site / "index.html").read_text()
    picture = (site / "pictures" / "demo.svg").read_text()
    assert "and&#160;the&#160;same&#160;as&#160;plain&#160;Python&#160;computes" in picture
