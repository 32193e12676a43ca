"""The options and the result of a client process."""

import json
import sys
from typing import Any


def read_options() -> dict[str, Any]:
    options: dict[str, Any] = json.loads(sys.argv[1])
    return options


def print_result(**values: float) -> None:
    print(json.dumps(values), flush=True)
