"""Events of the verifiable tools: one JSON object per line, with the time and the name first."""

import json
import time
from typing import Any


def print_event(name: str, **fields: Any) -> None:
    event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    print(json.dumps(event, separators=(",", ":"), ensure_ascii=False), flush=True)


def text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
