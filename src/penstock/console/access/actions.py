"""What a visitor may be allowed to do. `console.yaml` has the values as its words: `read-messages`."""

from __future__ import annotations

import enum


class Action(enum.Enum):
    VIEW = "view"
    READ_MESSAGES = "read-messages"
    PRODUCE = "produce"
    EDIT_TOPICS = "edit-topics"
    DELETE_TOPICS = "delete-topics"
    EDIT_GROUPS = "edit-groups"
    EDIT_SCHEMAS = "edit-schemas"
    EDIT_CONNECTORS = "edit-connectors"
    RUN_SQL = "run-sql"
    EDIT_SECURITY = "edit-security"
    EDIT_CLUSTER = "edit-cluster"
