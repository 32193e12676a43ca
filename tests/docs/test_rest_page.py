"""The page about the REST proxy: its requests are sent, in the order in which a reader meets them."""

import subprocess
from pathlib import Path

from penstock.testing.penstock_broker import PenstockBroker
from tests.docs.pages import HOW_TO, blocks
from tests.rest.proxies import TIMEOUT_S, RestProxy

PAGE = HOW_TO / "rest-proxy.md"


def test_the_requests_of_the_page_are_answered(tmp_path: Path) -> None:
    with PenstockBroker(tmp_path, options={"group.initial.rebalance.delay.ms": "0"}) as broker:
        proxy = RestProxy(tmp_path / "rest", broker.bootstrap)
        try:
            for script in blocks(PAGE.read_text(), "bash"):
                done = subprocess.run(
                    ["timeout", str(int(TIMEOUT_S)), "bash", "-ec", script.replace("localhost:8082", f"127.0.0.1:{proxy.port}")],
                    capture_output=True,
                    text=True,
                    check=False,
                )  # fmt: skip
                assert done.returncode == 0, done.stderr
                refused = done.stdout.replace('"error_code":null', "").replace('"error_code":200', "")
                assert "error_code" not in refused, done.stdout
        finally:
            assert proxy.close() == 0
