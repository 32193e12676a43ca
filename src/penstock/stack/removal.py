"""What a stack has kept, removed: `penstock down --volumes`.

Only what the stack made goes: the files of its members by their names (`Service.own_files`), their logs, and its own. A file that
is not known stays, with the folders above it, and is told. Links are removed and never followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from penstock.client.errors import UserError, reason
from penstock.inspection.places import is_locked
from penstock.stack import secured
from penstock.stack.contents import made
from penstock.stack.stack import Member, Stack
from penstock.stack.stack_file import FILE_NAME, LOCK_NAME
from penstock.stack.watching import WATCH_LOCK_NAME

NAMED_AT_MOST = 5


class Removal:
    """Made before the members stop, so that one can be asked first."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    @property
    def summary(self) -> str:
        names = ", ".join(member.name for member in self._stack.members)
        return f"what {names} have kept in {self._stack.directory}: records, logs, logins"

    def run(self) -> Iterator[str]:
        """Sentences about what was removed, and what stays. UserError where something cannot be removed, and, before anything is,
        where a broker still works on what would be: one whose pid file is lost, or that somebody has started by hand."""
        for member in self._stack.members:
            folder = self._stack.data_of(member)
            if is_locked(str(folder)):
                raise UserError(
                    f"{folder} is held by a broker that runs and that this stack did not start: stop it, then run this "
                    "again; nothing is removed"
                )
        try:
            for member in self._stack.members:
                self._remove_folder(member)
            self._remove_security()
            self._remove_files()
        except OSError as error:
            raise UserError(f"cannot remove {error.filename}: {reason(error)}") from None
        left = self._strangers()
        if left:
            named = ", ".join(map(str, left[:NAMED_AT_MOST])) + (" …" if len(left) > NAMED_AT_MOST else "")
            yield f"what the stack had kept in {self._stack.directory} is removed; what is not its own stays: {named}"
        else:
            self._stack.directory.rmdir()
            yield f"{self._stack.directory} is removed"

    def _remove_folder(self, member: Member) -> None:
        folder = self._stack.data_of(member)
        if folder.is_symlink() or not folder.is_dir():
            return
        own = re.compile(self._stack.service_of(member).own_files or r"(?!)")
        for where, folders, files in os.walk(folder, topdown=False):
            links = [name for name in folders if Path(where, name).is_symlink()]
            removed = 0
            for name in (*files, *links):
                path = Path(where, name)
                if own.fullmatch(path.relative_to(folder).as_posix()):
                    path.unlink()
                    removed += 1
            is_own = removed or folders or own.fullmatch(f"{Path(where).relative_to(folder).as_posix()}/")
            if where != str(folder) and is_own and not os.listdir(where):
                os.rmdir(where)
        if not os.listdir(folder):
            folder.rmdir()

    def _remove_security(self) -> None:
        folder = self._stack.directory / "security"
        if not self._stack.is_secure or folder.is_symlink() or not folder.is_dir():
            return
        names = {"ca.pem", "ca.key", "passwords.properties"}
        for member in self._stack.members:
            names |= {f"{member.name}.{kind}" for kind in ("pem", "key", "crt", "properties")}
        for name in names:
            (folder / name).unlink(missing_ok=True)
        if not os.listdir(folder):
            folder.rmdir()

    def _remove_files(self) -> None:
        directory = self._stack.directory
        for member in self._stack.members:
            for path in (self._stack.log_of(member), self._stack.pid_of(member)):
                path.unlink(missing_ok=True)
            (directory / f"{member.name}.secrets.properties").unlink(missing_ok=True)
        names = [made.FILE_NAME, WATCH_LOCK_NAME, Path(FILE_NAME).with_suffix(".new").name]
        if self._stack.is_secure:
            names += secured.CLIENT_FILES.values()
        # The description last: until then the same command can be run again.
        for name in (*names, FILE_NAME, LOCK_NAME):
            (directory / name).unlink(missing_ok=True)

    def _strangers(self) -> list[Path]:
        """What is left, by the outermost that is not the stack's."""
        found: list[Path] = []
        folders = {self._stack.data_of(member) for member in self._stack.members}
        folders.add(self._stack.directory / "security")
        for path in sorted(self._stack.directory.iterdir()):
            if path in folders and path.is_dir() and not path.is_symlink():
                found += sorted(path.iterdir())
            else:
                found.append(path)
        return found
