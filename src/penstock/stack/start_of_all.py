"""One `penstock up`: the stack is composed, its members started, and what shall be in it made."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from penstock.client.errors import UserError
from penstock.stack import brokers, services
from penstock.stack.composition import Wish, compose
from penstock.stack.contents.applying import Applying, told_end
from penstock.stack.contents.doors import doors_of
from penstock.stack.contents.made import read_made, write_made
from penstock.stack.contents.outcome import Kind
from penstock.stack.description.fitting import fitted
from penstock.stack.description.model import Description
from penstock.stack.description.table import key_of
from penstock.stack.ports import PortTaken
from penstock.stack.restarting import who_is_behind
from penstock.stack.secured import protect
from penstock.stack.stack import Stack, Tell
from penstock.stack.stack_file import locked, read_stack, write_stack
from penstock.stack.starting import bring_up, check_address, check_ports, running, stopped
from penstock.stack.stopping import bring_down

IN_SYNC_TIMEOUT_S = 10.0


class Shown(Protocol):
    """What the person at the terminal sees of it."""

    tell: Tell
    waiting: Tell

    def begin(self, stack: Stack) -> None:
        """The members are known now."""

    def show(self, name: str, state: str) -> None:
        """As `starting.Show`."""

    def told(self, kind: Kind, sentence: str) -> None:
        """Of what shall be in the stack."""

    def settled(self) -> None:
        """Nothing is waited for any more."""

    def hint(self, sentence: str) -> None:
        """`{}` stands for the words that name this stack to other commands."""


class StartOfAll:
    """One `penstock up`: the stack is composed, its members started, and what shall be in it made."""

    def __init__(
        self, data: Path, wish: Wish, description: Description | None, only: tuple[str, ...]
    ) -> None:
        self._data = data
        self._wish = wish if description is None else _merged(description.wish, wish)
        self._description = description
        self._only = only
        self.has_failed = False

    def run(self, show: AbstractContextManager[Shown], *, foreground: bool) -> Stack:
        """`foreground`: what this command starts ends with it, also where it fails."""
        with locked(self._data), show as shown:
            stack, known = self._composed(shown)
            shown.begin(stack)
            ours = stopped(stack, stack.members)
            try:
                self._bring_up(stack, known, shown)
            except (KeyboardInterrupt, UserError):
                if foreground:
                    bring_down(stack, running(stack, ours), tell=shown.tell, waiting=shown.waiting)
                elif running(stack, stack.members):
                    shown.hint("what was started goes on: penstock down{} stops it")
                raise
        return stack

    def _composed(self, shown: Shown) -> tuple[Stack, Stack | None]:
        """The stack as it shall be, checked and written, so that its members are found again whatever happens; and as it was."""
        known = read_stack(self._data)
        wish = self._wish
        if self._description is not None and known is not None:
            wish = fitted(
                wish, known, self._description.path, lambda sentence: shown.told("differs", sentence)
            )
        stack = compose(self._data, known, wish, services.SERVICES)
        protect(stack)
        check_address(stack, known)
        self._check_ports(stack)
        # Members before they start; settings when brokers have started with them.
        starting = stack._replace(settings=known.settings if known is not None else {})
        if starting != known:
            write_stack(starting)
        return stack, known

    def _check_ports(self, stack: Stack) -> None:
        try:
            check_ports(stack, stack.chosen(self._only) or list(stack.members))
        except PortTaken as error:
            if self._description is None:
                raise
            key = key_of(stack.service_of(error.member))
            raise UserError(
                f"{error.told}, or give it another `port` below `{key}` in {self._description.path} (or with "
                f"{error.option}); where {stack.directory} has it already, with another `data`, too"
            ) from None

    def _bring_up(self, stack: Stack, known: Stack | None, shown: Shown) -> None:
        wanted = stack.chosen(self._only) or list(stack.members)
        written = read_stack(stack.directory)
        ran = running(stack, wanted)
        applying = self._applying(stack, shown)
        for member in wanted:
            shown.show(member.name, "runs" if member in ran else "waits")
        if applying is not None:
            core = [one for one in wanted if stack.service_of(one).default_count != 0]
            bring_up(stack, core, tell=shown.tell, waiting=shown.waiting, show=shown.show)
            applying.topics()
            wanted = [member for member in wanted if member not in core]
        bring_up(stack, wanted, tell=shown.tell, waiting=shown.waiting, show=shown.show)
        for behind in who_is_behind(stack, waiting=shown.waiting, timeout_s=IN_SYNC_TIMEOUT_S):
            shown.tell(f"{behind} yet; penstock status shows more")
        if written != stack:
            write_stack(stack)
            before = known.settings if known is not None else {}
            for sentence in _with_old_settings(stack, [one.name for one in ran], before):
                shown.tell(sentence)
        shown.settled()
        if applying is not None:
            self._fill(stack, applying, shown)

    def _applying(self, stack: Stack, shown: Shown) -> Applying | None:
        if self._description is None or self._only:
            return None
        return Applying(self._description, lambda: doors_of(stack), told=shown.told)

    def _fill(self, stack: Stack, applying: Applying, shown: Shown) -> None:
        assert self._description is not None
        applying.services()
        made = read_made(stack.directory)
        left = applying.gone(made)
        if left != made:
            write_made(stack.directory, left)
        if not self._description.contents.is_empty or applying.outcome.differs:
            shown.tell(told_end(applying.outcome, self._description.path))
        self.has_failed = bool(applying.outcome.failed)


def _merged(of_file: Wish, of_line: Wish) -> Wish:
    """The command line may move ports, secure it all, and ask for more services."""
    merged = {}
    for service in services.SERVICES:
        told, asked = of_file.of(service), of_line.of(service)
        merged[service.name] = replace(
            told,
            count=told.count if asked.count is None or told.count is not None else asked.count,
            port=told.port if asked.port is None else asked.port,
        )
    return of_file._replace(services=merged, secure=of_file.secure or of_line.secure)


def _with_old_settings(stack: Stack, ran: list[str], before: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What to say of members that ran already, with other settings than they shall have."""
    sentences = []
    for service in stack.services:
        names = [member.name for member in stack.members_of(service.name) if member.name in ran]
        if names and tuple(before.get(service.name, ())) != stack.settings_of(service.name):
            how = "cluster restart --rolling" if service.name == brokers.NAME else f"restart {service.name}"
            sentences.append(
                f"{', '.join(names)} ran already, with the options of before: penstock {how} changes that"
            )
    return sentences
