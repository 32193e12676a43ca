"""Filter: leaves records out; a predicate says which."""

from __future__ import annotations

from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.sides import PACKAGE


class Filter(Transformation):
    java_names = (PACKAGE + "Filter",)

    def apply(self, record: ConnectRecord) -> None:
        return None
