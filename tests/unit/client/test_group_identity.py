"""What instances tell one another, in Confluent's forms."""

import json

from penstock.client.group_identity import Assignment, Identity, choose, read_assignment, read_identity

ONE, TWO = Identity("http", "a", 8081), Identity("http", "b", 8081)


def test_forms_are_confluents() -> None:
    assert json.loads(ONE.metadata()) == {
        "host": "a", "port": 8081, "master_eligibility": True, "scheme": "http", "version": 1, "leader": False,
    }  # fmt: skip
    assert read_identity(ONE.metadata()) == ONE
    assignment = Assignment("m-1", ONE)
    assert json.loads(assignment.data())["master_identity"]["host"] == "a"
    assert read_assignment(assignment.data()) == assignment


def test_theirs_are_read() -> None:
    theirs = (
        b'{"version":1,"host":"h","port":1,"master_eligibility":false,"scheme":"https","leader":true,"new":1}'
    )
    assert read_identity(theirs) == Identity("https", "h", 1, False, True)
    karapaces = (
        b'{"version":3,"karapace_version":"5","host":"h","port":1,"scheme":"http","master_eligibility":true}'
    )
    assert read_identity(karapaces) == Identity("http", "h", 1)
    nobody = read_assignment(b'{"version":1,"error":0}')
    assert nobody is not None
    assert nobody.identity is None
    for bad in (b"", b"[]", b"{", b'{"host":1,"port":1}'):
        assert read_identity(bad) is None


def test_who_leads_goes_on_and_otherwise_the_smallest_address_leads() -> None:
    members = {"m-2": TWO.metadata(), "m-1": ONE.metadata()}
    assert choose(members).member_id == "m-1"
    members["m-2"] = TWO._replace(leads=True).metadata()
    assert choose(members).member_id == "m-2"
    members["m-1"] = ONE._replace(leads=True).metadata()
    assert choose(members).member_id == "m-1"
    members = {"m-1": ONE._replace(is_eligible=False).metadata(), "m-2": TWO.metadata(), "m-3": b"?"}
    assert choose(members).member_id == "m-2"
    assert choose({"m-1": ONE._replace(is_eligible=False).metadata()}).identity is None
    assert choose({"m-1": ONE.metadata(), "m-2": ONE.metadata()}).has_duplicates
