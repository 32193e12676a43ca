"""A topic in memory, written as leaders and other registries write it, and compacted as a broker does."""

from __future__ import annotations

from penstock.registry.decisions.decision import Decision
from penstock.registry.records import Read, Record, noop
from penstock.registry.state import State
from penstock.registry.terms import Term


class Log:
    def __init__(self) -> None:
        self.records: list[Read] = []
        self._next = 0

    def append(self, record: Record, term: Term | None = None, sequence: int = 0) -> Read:
        header = None if term is None else term.header(sequence)
        read = Read(self._next, 1_700_000_000_000 + self._next, record.key, record.value, header)
        self._next += 1
        self.records.append(read)
        return read

    def write(self, decision: Decision, term: Term | None = None) -> Decision:
        for record in decision.records:
            self.append(record, term)
        return decision

    def begin(self, term: Term) -> None:
        self.append(noop(self.state().max_ids), term)

    def state(self) -> State:
        """As an instance that starts now finds it."""
        state = State()
        for record in self.records:
            state.replay(record)
        return state

    def compact(self) -> None:
        """The last record of each key, in their order."""
        last = {record.key: record.offset for record in self.records}
        self.records = [record for record in self.records if last[record.key] == record.offset]


def shown(state: State) -> object:
    """All that clients can see of it."""
    return (
        {
            (name, number): (version.id, version.content.mark, version.is_deleted)
            for name, versions in state.subjects.items()
            for number, version in versions.items()
        },
        {
            context: {number: schema.content.text for number, schema in schemas.items()}
            for context, schemas in state.schemas.items()
        },
        state.configs,
        state.modes,
        state.contexts,
    )
