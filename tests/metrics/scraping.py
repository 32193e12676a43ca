"""A page of metrics, as a scraper reads it."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_S = 30.0

Page = dict[str, list[tuple[dict[str, str], float]]]


def scrape(port: int) -> Page:
    """By the name of the sample: labels and value."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=TIMEOUT_S) as answer:
        text = answer.read().decode()
    found: Page = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def value(page: Page, name: str, **labels: str) -> float | None:
    """Of the sample that has these labels, and those labels only where none are given; None where there is none."""
    for found, number in page.get(name, ()):
        if all(found.get(key) == each for key, each in labels.items()) and (labels or not found):
            return number
    return None


def until(look: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {TIMEOUT_S:g} seconds")
