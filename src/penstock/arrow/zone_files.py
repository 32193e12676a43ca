"""The time zones of this machine: of the system, or else of the package tzdata, which pandas brings."""

from __future__ import annotations

import zoneinfo
from importlib import resources
from pathlib import Path

from penstock.records.columnar.time_zones import TimeZones


def read_zone(name: str) -> bytes | None:
    for folder in zoneinfo.TZPATH:
        try:
            return (Path(folder) / name).read_bytes()
        except OSError:
            continue
    try:
        return resources.files("tzdata").joinpath("zoneinfo", name).read_bytes()
    except (OSError, ModuleNotFoundError):
        return None


TIME_ZONES = TimeZones(read_zone)
