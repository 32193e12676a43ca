"""A cluster that somebody has met is waited for; one that was never there is refused at once."""

import threading
from pathlib import Path

import pytest

from penstock.arrow.client import Client
from penstock.arrow.errors import ReadFailed
from penstock.arrow.options import client_options
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port


def test_a_broker_that_is_being_started_is_waited_for_by_who_knows_it(tmp_path: Path) -> None:
    port = free_port()
    options = client_options(f"127.0.0.1:{port}", {"default.api.timeout.ms": 60_000})
    with pytest.raises(ReadFailed, match="cannot reach a broker"):
        Client(options).topic_names()
    names: list[list[str]] = []
    client = Client(options, is_known=True)
    waiting = threading.Thread(target=lambda: names.append(client.topic_names()))
    waiting.start()
    with PenstockBroker(tmp_path, port=port):
        waiting.join(60)
    client.close()
    assert names == [[]]
