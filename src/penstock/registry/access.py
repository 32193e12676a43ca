"""Who may do what to which subject: rules in a file (`acl_file`), decided as the broker's are. Without the file, everybody who
is logged in may do everything.

    Read             see the schemas of a subject, also by their ids; compare with them
    Describe         see that it is there, and its versions; Read, Write and Delete allow it, too
    Write            register schemas
    Delete           delete versions and the subject
    DescribeConfigs  see its config and mode; AlterConfigs changes them

The file is read again when it has changed. One that cannot be read leaves the rules as they were.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from typing import Final

from penstock.client.errors import BadOption, UserError
from penstock.client.property_files import read_text
from penstock.model.acl import CLUSTER_NAME, Operation, shown
from penstock.registry.acl_file import GLOBAL, SUBJECT, BadRules, parse_rules
from penstock.registry.refusals import not_allowed
from penstock.security.acls import AclRules
from penstock.web.call import Call

log = logging.getLogger("penstock.registry")

ACLS_FILE: Final = "penstock.subject.acls.file"
CHECK_FILE_S: Final = 2.0


class Access:
    """BadOption where the file cannot be used at the start."""

    def __init__(self, path: str, super_users: Iterable[str]) -> None:
        self._path = path
        self._super_users = frozenset(super_users)
        self._rules: AclRules | None = None
        self._stamp: tuple[int, int] | None = None
        self._looked_s = time.monotonic()
        if path:
            try:
                self._load()
            except UserError as error:
                raise BadOption(f"{ACLS_FILE}: {error}") from None

    @property
    def is_on(self) -> bool:
        return self._rules is not None

    def allows(self, call: Call, operation: Operation, subject: str | None) -> bool:
        """None: the config and mode of everything."""
        rules = self._present()
        if rules is None:
            return True
        resource = (GLOBAL, CLUSTER_NAME) if subject is None else (SUBJECT, subject)
        return rules.decide(str(call.principal), call.client_host, operation, *resource).is_allowed

    def check(self, call: Call, operation: Operation, subject: str | None) -> None:
        if not self.allows(call, operation, subject):
            what = "the global config" if subject is None else f"Subject: {subject}"
            raise not_allowed(str(call.principal), shown(operation), what)

    def _present(self) -> AclRules | None:
        if self._rules is not None and time.monotonic() - self._looked_s > CHECK_FILE_S:
            self._looked_s = time.monotonic()
            try:
                self._load()
            except UserError as error:
                log.warning("The access rules stay as they were: %s", error)
        return self._rules

    def _load(self) -> None:
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise UserError(f"cannot read {self._path}: {(error.strerror or '').lower()}") from None
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._rules = parse_rules(read_text(self._path), super_users=self._super_users)
        except BadRules as error:
            raise UserError(f"{self._path}: {error}") from None
        log.info("Access rules are read from %s", self._path)
