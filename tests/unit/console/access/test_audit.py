"""The audit log: telling never blocks, never fails, and is bounded."""

from __future__ import annotations

import json
import logging

import pytest

from penstock.client.clients import Connection
from penstock.console.access.audit import MAX_TEXT, MAX_WAITING, Audit

NOWHERE = "127.0.0.1:9"


def tell(audit: Audit, **changed: str) -> None:
    entry = {
        "cluster": "local", "visitor": "ana", "action": "edit-topics", "resource": "orders", "what": "do it",
        "outcome": "done",
    }  # fmt: skip
    audit.tell(**{**entry, **changed})


def test_an_entry_is_a_line_of_json_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="penstock.console.audit")
    tell(Audit(), error="no such topic\nat all")
    [record] = caplog.records
    entry = json.loads(record.getMessage())
    assert entry.pop("time_ms") > 0
    assert entry == {
        "visitor": "ana", "cluster": "local", "action": "edit-topics", "resource": "orders", "what": "do it",
        "outcome": "done", "error": "no such topic at all",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["\udcff", "a\nb", "\x00", "<script>", "ä" * 100_000])
def test_whatever_a_name_is_it_can_be_told(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="penstock.console.audit")
    tell(Audit(), resource=name, visitor=name[:10], what=name)
    line = caplog.records[0].getMessage()
    assert len(line.splitlines()) == 1
    assert len(json.loads(line)["resource"]) <= MAX_TEXT


def test_a_cluster_that_does_not_answer_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="penstock.console.audit")
    audit = Audit("audit", Connection(NOWHERE))
    audit.start()
    for _ in range(MAX_WAITING + 200):
        tell(audit)
    audit.close()
    said = [record.getMessage() for record in caplog.records]
    assert len([line for line in said if line.startswith("{")]) == MAX_WAITING + 200, "all are in the log"
    assert any("cannot be written" in line for line in said)
    assert any("others wait to be written" in line for line in said)
    assert any("more entries are not in the topic" in line for line in said)
