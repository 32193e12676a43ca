"""For stand-ins of a node whose clients have no quotas."""

from types import SimpleNamespace
from typing import Any

NO_QUOTAS: Any = SimpleNamespace(is_active=False, now_s=lambda: 0.0)
