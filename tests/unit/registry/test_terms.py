"""A leader that has been replaced writes nothing that counts."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.registry import records
from penstock.registry.candidates import Candidate
from penstock.registry.decisions.register import register
from penstock.registry.records import Record
from penstock.registry.state import State
from penstock.registry.terms import NO_TERM, Term, parse
from tests.unit.registry.logs import Log, shown

OLD, NEW = Term(1, "old"), Term(2, "new")


def avro(name: str) -> Candidate:
    return Candidate("AVRO", f'"{name}"')


def test_a_header_is_read_again() -> None:
    assert parse(NEW.header(7)) == (NEW, 7)
    for other in (b"", b"1", b"1:a", b"x:a:1", b"1::1", b"1:a:x", b"\xff:a:1", b"1:" + b"a" * 200 + b":1"):
        assert parse(other) is None


def test_a_late_record_is_ignored_and_undone() -> None:
    log = Log()
    log.begin(OLD)
    stale = log.state()
    log.begin(NEW)
    first = log.write(register(log.state(), "s", avro("int")), NEW)
    before = shown(log.state())
    late = register(stale, "s", avro("long"))
    assert late.answer.id == first.answer.id  # it would have been the id of two schemas
    log.write(late, OLD)
    state = log.state()
    assert shown(state) == before
    (key,) = state.overwritten
    log.append(Record(key, state.value_that_counts(key)), NEW)
    log.compact()
    repaired = log.state()
    assert shown(repaired) == before
    assert not repaired.overwritten


def test_a_late_delete_is_undone_too() -> None:
    log = Log()
    log.begin(OLD)
    log.write(register(log.state(), "s", avro("int")), OLD)
    log.begin(NEW)
    log.append(records.deleted_subject("s", 1), OLD)
    log.append(Record(records.schema_key("s", 1), None), OLD)
    log.append(records.config("s", {"compatibilityLevel": "NONE"}), OLD)
    state = log.state()
    assert state.latest("s") is not None
    for key in list(state.overwritten):
        log.append(Record(key, state.value_that_counts(key)), NEW)
    log.compact()
    assert shown(log.state()) == shown(state)


def test_of_two_that_begin_the_same_term_the_first_has_it() -> None:
    log = Log()
    one, other = Term(3, "one"), Term(3, "other")
    state = State()
    assert state.term == NO_TERM
    assert state.replay(log.append(records.noop({}), one))
    assert not state.replay(log.append(records.noop({}), other))
    assert state.replay(log.append(records.config(None, {"compatibilityLevel": "FULL"}), one))
    assert state.term == one


def test_records_without_a_term_count() -> None:
    log = Log()
    log.begin(NEW)
    log.write(register(log.state(), "s", avro("int")))
    assert log.state().latest("s") is not None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 4)), max_size=40))
def test_what_was_answered_stays_whoever_writes_late(steps: list[tuple[int, int, int]]) -> None:
    """Leaders come one after the other, and each goes on to write by what it knew; compaction comes at any time after the leader
    has undone what was late."""
    log = Log()
    term = Term(1, "leader")
    log.begin(term)
    former: list[tuple[Term, State]] = []
    answered: dict[str, int] = {}
    for number, (kind, subject, which) in enumerate(steps):
        if kind == 0:
            former.append((term, log.state()))
            term = Term(term.number + 1, f"leader-{number}")
            log.begin(term)
        elif kind == 1 and former:
            late_term, knew = former[which % len(former)]
            log.write(register(knew, f"s{subject}", avro(f"late{number}")), late_term)
            state = log.state()
            for key in list(state.overwritten):
                log.append(Record(key, state.value_that_counts(key)), term)
            log.compact()
        else:
            text = f"a{number}"
            answered[text] = log.write(register(log.state(), f"s{subject}", avro(text)), term).answer.id
    state = log.state()
    assert len(set(answered.values())) == len(answered)
    found = {schema.content.text: number for number, schema in state.schemas.get(".", {}).items()}
    assert found == {f'"{text}"': number for text, number in answered.items()}
