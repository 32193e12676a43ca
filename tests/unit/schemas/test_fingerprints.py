"""Ids from what a schema says: what is digested, in which order."""

import base64
import hashlib
import uuid

from penstock.schemas.fingerprints import guid_of, md5_of, md5_text
from penstock.schemas.model import SchemaReference


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()


def test_the_text_alone() -> None:
    assert md5_of('"string"') == _md5(b'"string"')
    assert md5_text('"string"') == base64.b64encode(_md5(b'"string"')).decode()
    assert guid_of('"string"') == str(uuid.UUID(bytes=_md5(b'"string"')))


def test_references_follow_the_text_in_their_order() -> None:
    references = [SchemaReference("b.C", "s1", 258), SchemaReference("a", "s0", 1)]

    assert md5_of("text", references) == _md5(b"textb.Cs1\x00\x00\x01\x02as0\x00\x00\x00\x01")


def test_metadata_follows_in_the_order_of_its_names() -> None:
    metadata = {
        "sensitive": ["t", "s"],
        "properties": {"b": "2", "a": "1"},
        "tags": {"y": ["q", "p"], "x": ["o"]},
    }

    assert md5_of("text", (), metadata) == _md5(b"text\x01xoypqa1b2st")


def test_empty_metadata_is_not_the_same_as_none() -> None:
    assert md5_of("text", (), {}) == _md5(b"text\x01")


def test_rules_follow_in_their_order_with_what_they_do_not_say() -> None:
    rule_set = {
        "domainRules": [
            {"name": "n", "doc": "d", "type": "CEL", "tags": ["z", "y"], "params": {"k": "v"}, "expr": "e",
             "onSuccess": "NONE", "onFailure": "ERROR", "disabled": True}
        ],
        "migrationRules": [{"name": "m", "kind": "CONDITION", "mode": "UPGRADE"}],
    }  # fmt: skip

    assert md5_of("text", (), None, rule_set) == _md5(
        b"text\x01mCONDITIONUPGRADEndTRANSFORMWRITEREADCELyzkveNONEERROR\x01"
    )
