"""Records of the topic become subjects, versions, ids, configs and modes."""

import json

import pytest

from penstock.registry import records
from penstock.registry.candidates import Candidate
from penstock.registry.decisions.delete import delete_subject, delete_version
from penstock.registry.decisions.lookup import found_in, version_of
from penstock.registry.decisions.register import register
from penstock.registry.decisions.settings import set_config, set_mode
from penstock.registry.names import beside, context_named, is_in, is_valid_subject, normalized, parsed
from penstock.registry.records import Record
from penstock.registry.references import texts_of
from penstock.registry.refusals import Refusal
from penstock.registry.scope import config_in_scope, mode_in_scope
from penstock.registry.terms import Term
from penstock.schemas.model import SchemaReference
from tests.unit.registry.logs import Log, shown


def avro(text: str, *references: SchemaReference) -> Candidate:
    return Candidate("AVRO", json.dumps(text), references)


def put(log: Log, subject: str, text: str, *references: SchemaReference) -> int:
    found: int = log.write(register(log.state(), subject, avro(text, *references))).answer.id
    return found


def test_keys_have_the_bytes_that_compaction_compares() -> None:
    assert (
        records.schema_key('a"ä', 1)
        == '{"keytype":"SCHEMA","subject":"a\\"ä","version":1,"magic":1}'.encode()
    )
    assert records.subject_key("CONFIG", None) == b'{"keytype":"CONFIG","magic":0}'
    assert records.former_global_key("CONFIG") == b'{"keytype":"CONFIG","subject":null,"magic":0}'
    assert (
        records.subject_key("DELETE_SUBJECT", "s") == b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}'
    )
    expected = b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}'
    assert records.context_key(".c") == expected


def test_names_have_one_form() -> None:
    assert parsed(":.c:s") == (".c", "s")
    assert parsed(":.c:s:t") == (".c", "s:t")
    assert normalized(":.:s") == "s"
    assert (beside(":.c:s", "t"), beside("s", ":.d:t"), beside("s", "t")) == (":.c:t", ":.d:t", "t")
    assert {context_named(text) for text in ("c", ".c", ":.c:")} == {".c"}
    with pytest.raises(ValueError, match="colon"):
        context_named("a:b")
    assert [is_in(None, "s"), is_in(":.c:", ":.c:s"), is_in(":.c:", "s")] == [True, True, False]
    assert [is_valid_subject(name) for name in ("s", "a\n", "__EMPTY", ":.c:", "\ud800")] == [
        True, False, False, False, False,
    ]  # fmt: skip


def test_a_log_that_is_compacted_says_the_same() -> None:
    log = Log()
    put(log, "a", "int")
    put(log, "a", "long")
    put(log, ":.c:a", "int")
    log.write(delete_version(log.state(), "a", 1, permanent=False))
    log.write(delete_subject(log.state(), "a", permanent=False))
    put(log, "a", "int")
    log.write(set_config(log.state(), "a", {"compatibility": "full"}))
    log.write(set_mode(log.state(), ":.c:", {"mode": "READONLY"}, force=False))
    before = shown(log.state())
    log.compact()
    assert shown(log.state()) == before


def test_a_schema_that_was_deleted_softly_comes_back_with_its_id() -> None:
    log = Log()
    one = put(log, "s", "int")
    put(log, "s", "long")
    log.write(delete_version(log.state(), "s", 1, permanent=False))
    assert put(log, "s", "int") == one
    assert [each.number for each in log.state().versions("s", deleted=True)] == [2, 3]
    with pytest.raises(Refusal) as refused:
        version_of(log.state(), "s", 1, deleted=True)
    assert refused.value.code == 40402


def test_what_is_referred_to_keeps_its_old_version() -> None:
    log = Log()
    put(log, "s", "int")
    put(log, "other", "o", SchemaReference("s", "s", 1))
    log.write(delete_subject(log.state(), "other", permanent=False))
    log.write(delete_version(log.state(), "s", 1, permanent=False))
    put(log, "s", "int")
    assert [each.number for each in log.state().versions("s", deleted=True)] == [1, 2]


def test_ids_are_not_given_twice() -> None:
    log = Log()
    first = put(log, "s", "int")
    log.write(delete_subject(log.state(), "s", permanent=False))
    log.write(delete_subject(log.state(), "s", permanent=True))
    log.compact()
    log.records = [each for each in log.records if each.value is not None]  # tombstones go after a day
    assert put(log, "s", "long") == first + 1


def test_records_that_cannot_be_are_passed_over() -> None:
    log = Log()
    put(log, "s", "int")
    before = shown(log.state())
    bad = [
        (b"\xff", b"{}"),
        (b"[]", b"{}"),
        (b'{"keytype":"NEW"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"x","version":1,"magic":1}', b"{"),
        (b'{"keytype":"SCHEMA","subject":"x","version":"1","magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"x","version":1,"magic":1}', b'{"id":"1","schema":""}'),
        (b'{"keytype":"SCHEMA","subject":"x","version":1,"magic":1}', b'{"id":1,"schema":"\\"long\\""}'),
        (
            b'{"keytype":"SCHEMA","subject":"x","version":1,"magic":1}',
            b'{"id":2,"schema":"","references":[1]}',
        ),
        (b'{"keytype":"CONFIG","subject":1}', b"{}"),
    ]
    for key, value in bad:
        log.append(Record(key, value))
    state = log.state()
    assert shown(state) == before
    assert state.passed_over == len(bad)


def test_configs_and_modes_are_found_by_scope() -> None:
    log = Log()
    log.write(set_config(log.state(), None, {"compatibility": "FULL"}))
    log.write(set_config(log.state(), ":.c:", {"compatibility": "NONE"}))
    log.write(set_config(log.state(), ":.c:s", {"normalize": True}))
    log.write(set_mode(log.state(), None, {"mode": "READONLY"}, force=False))
    state = log.state()
    assert config_in_scope(state, "s", "BACKWARD") == {"compatibilityLevel": "FULL"}
    assert config_in_scope(state, ":.c:t", "BACKWARD") == {"compatibilityLevel": "NONE"}
    assert config_in_scope(state, ":.c:s", "BACKWARD") == {"normalize": True, "compatibilityLevel": "NONE"}
    assert config_in_scope(state, ":.d:s", "BACKWARD") == {"compatibilityLevel": "BACKWARD"}
    assert (mode_in_scope(state, "s"), mode_in_scope(state, ":.c:s")) == ("READONLY", "READWRITE")


def test_what_is_referred_to_comes_in_the_order_of_needs() -> None:
    log = Log()
    put(log, "a", "a")
    put(log, "b", "b", SchemaReference("A", "a", 1))
    put(log, "c", "c", SchemaReference("B", "b", 1), SchemaReference("A", "a", 1))
    texts = texts_of(log.state(), "d", [SchemaReference("C", "c", 1)])
    assert list(texts) == ["A", "B", "C"]
    assert texts["B"].references == (SchemaReference("A", "a", 1),)


def test_references_in_a_circle_come_to_an_end() -> None:
    log = Log()
    for name, other in (("a", "b"), ("b", "a")):
        value = {
            "subject": name,
            "version": 1,
            "id": ord(name),
            "schema": name,
            "references": [{"name": other, "subject": other, "version": 1}],
        }
        log.append(Record(records.schema_key(name, 1), json.dumps(value).encode()))
    assert set(texts_of(log.state(), "c", [SchemaReference("a", "a", 1)])) == {"a", "b"}


def test_the_newest_equal_version_is_found() -> None:
    log = Log()
    put(log, "s", "int")
    put(log, ":.c:s", "int")
    state = log.state()
    found = found_in(state, "s", avro("int").content)
    assert found is not None
    assert (found.version, found.id) == (1, 1)
    assert found_in(state, "t", avro("int").content) is None


def test_a_key_that_another_registry_writes_in_its_own_way_goes_with_the_version() -> None:
    log = Log()
    other = b'{"magic": 1, "keytype": "SCHEMA", "subject": "s", "version": 1}'
    log.append(Record(other, b'{"subject":"s","version":1,"id":1,"schema":"\\"int\\"","deleted":false}'))
    log.write(delete_version(log.state(), "s", 1, permanent=False))
    log.compact()
    log.write(delete_version(log.state(), "s", 1, permanent=True))
    log.compact()
    log.records = [each for each in log.records if each.value is not None]
    assert not log.state().subjects


SORTED = '{"fields":[{"name":"a","type":"int"}],"name":"R","type":"record"}'
IN_OUR_ORDER = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


def by_karapace(log: Log, subject: str, schema_id: int, text: str | None) -> None:
    value = {"subject": subject, "version": 1, "id": schema_id, "schema": text, "deleted": False}
    data = b"" if text is None else json.dumps(value).encode()
    log.append(Record(records.schema_key(subject, 1), data))


def test_a_schema_that_karapace_wrote_is_known_in_our_words_too() -> None:
    log = Log()
    by_karapace(log, "s", 7, SORTED)
    candidate = Candidate("AVRO", IN_OUR_ORDER)
    there = found_in(log.state(), "s", candidate.content)
    assert there is not None
    assert (there.id, there.content.text) == (7, SORTED)
    assert log.write(register(log.state(), "s", candidate)).records == ()
    assert log.write(register(log.state(), "t", candidate)).answer.id == 7
    assert log.state().subjects["t"][1].content.text == SORTED
    assert found_in(log.state(), "s", Candidate("AVRO", IN_OUR_ORDER.replace("int", "long")).content) is None


def test_what_we_wrote_ourselves_is_told_apart_by_its_order() -> None:
    log = Log()
    log.begin(Term(1, "one"))
    log.write(register(log.state(), "s", Candidate("JSON", SORTED)), Term(1, "one"))
    assert found_in(log.state(), "s", Candidate("JSON", IN_OUR_ORDER).content) is None


def test_karapace_removes_a_version_with_an_empty_value() -> None:
    log = Log()
    by_karapace(log, "s", 7, SORTED)
    by_karapace(log, "s", 7, None)
    state = log.state()
    assert (state.subjects, state.schemas["."], state.passed_over) == ({}, {}, 0)
    assert state.id_of(".", Candidate("AVRO", IN_OUR_ORDER).content) is None
    assert state.next_id(".") == 8
