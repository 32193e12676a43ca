"""The form of every decision here: what to answer, what to write, what to remember."""

from typing import Generic, NamedTuple, TypeVar

from penstock.metadata.image import Change
from penstock.metadata.tree import TreeOp

Result = TypeVar("Result")

# Kafka's own bound on how much one request may change.
MAX_PARTITIONS_PER_REQUEST = 10_000


class Decision(NamedTuple, Generic[Result]):
    """Write `ops` as one `multi`, then apply `changes` to the image, then answer `results`. All refused or
    only validated: no ops and no changes."""

    results: list[Result]
    ops: list[TreeOp]
    changes: list[Change]
