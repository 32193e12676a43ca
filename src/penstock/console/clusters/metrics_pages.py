"""What brokers serve on their metrics pages: bytes in and out, and requests. Brokers of Penstock say by DescribeConfigs
where it is.

The page is read line by line for a few series; the rest of it is not looked at. A broker whose page cannot be read has none
of them.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from penstock.client.cluster_client import BrokerNode

TIMEOUT_S: Final = 2.0
WHOLE_TIMEOUT_S: Final = 5.0
"""Of a page that comes bit by bit: nobody else looks at the cluster meanwhile."""
READ_BYTES: Final = 1 << 18
MAX_BYTES: Final = 16 << 20
BYTES_IN, BYTES_OUT, REQUESTS = "bytes_in", "bytes_out", "requests"
_WITHOUT_LABELS: Final = {
    "kafka_server_brokertopicmetrics_bytesin_total": BYTES_IN,
    "kafka_server_brokertopicmetrics_bytesout_total": BYTES_OUT,
}
_SUMMED: Final = {"kafka_network_requestmetrics_requests_total": REQUESTS}
_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::", "[::]", "*"})


def read_counters(lines: Iterable[str]) -> dict[str, float]:
    """The counters of one page.

    >>> read_counters(['kafka_network_requestmetrics_requests_total{request="Fetch"} 2.0'])
    {'requests': 2.0}
    """
    found: dict[str, float] = {}
    for line in lines:
        if not line.startswith("kafka_"):
            continue
        name, brace, _ = line.partition("{")
        with suppress(ValueError):
            if brace and name in _SUMMED:
                key = _SUMMED[name]
                found[key] = found.get(key, 0.0) + float(line.rpartition("}")[2].split()[0])
            elif not brace:
                words = line.split()
                if len(words) >= 2 and words[0] in _WITHOUT_LABELS:
                    found[_WITHOUT_LABELS[words[0]]] = float(words[1])
    return found


def counters(listeners: Mapping[int, str], nodes: Mapping[int, BrokerNode]) -> dict[tuple[int, str], float]:
    """Of each broker that has a page which can be read."""
    found: dict[tuple[int, str], float] = {}
    for node_id, listener in listeners.items():
        node = nodes.get(node_id)
        if node is None:
            continue
        host, _, port = listener.rpartition(":")
        host = node.host if host in _EVERYWHERE else host
        try:
            page = _fetched(host.strip("[]"), int(port))
        except (OSError, ValueError, http.client.HTTPException):
            continue
        for name, value in read_counters(page.splitlines()).items():
            found[node_id, name] = value
    return found


def _fetched(host: str, port: int) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    ends_s = time.monotonic() + WHOLE_TIMEOUT_S
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            return ""
        page = bytearray()
        while len(page) < MAX_BYTES and (part := answer.read1(READ_BYTES)):
            page += part
            if time.monotonic() > ends_s:
                raise TimeoutError
        return page.decode("utf-8", "replace")
    finally:
        connection.close()
