"""All paths of the registry."""

from __future__ import annotations

from penstock.registry.registry import Registry
from penstock.registry.routes import (
    about,
    compatibility,
    contexts,
    schemas,
    settings,
    subjects,
    versions,
)
from penstock.registry.routes.paths import Paths
from penstock.web.routes import Routes


def table_of(registry: Registry) -> Routes:
    paths = Paths()
    for module in (about, schemas, subjects, versions, compatibility, settings, contexts):
        module.add_to(paths, registry)
    return paths.routes
