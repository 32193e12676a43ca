"""The analysed plan of a query as Spark's JSON, which tiers/plans.py reads. Only a classic DataFrame has one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def plan_nodes(frame: DataFrame) -> list[dict[str, Any]]:
    java_frame: Any = getattr(frame, "_jdf")  # noqa: B009 - mypy knows the DataFrame of Spark Connect, which has none
    nodes: list[dict[str, Any]] = json.loads(java_frame.queryExecution().analyzed().toJSON())
    return nodes
