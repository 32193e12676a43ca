"""Functions of texts, bytes and regular expressions, by SQL text."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from penstock.streams.functions import java_regex
from penstock.streams.functions.java_regex_classes import OnlyBacktracking
from penstock.streams.functions.refusals import FunctionFailed
from tests.unit.streams.functions.evaluating import FAILS, value_of

NULL = "CAST(NULL AS STRING)"
NO_BYTES = "CAST(NULL AS BYTES)"

TEXTS: list[tuple[str, Any]] = [
    ("UCASE('aé')", "AÉ"),
    (f"UCASE({NULL})", None),
    ("LCASE('AÉ')", "aé"),
    ("TRIM(CHR(9) + ' a b ')", "a b"),
    ("LEN('abc')", 3),
    ("LEN(TO_BYTES('é', 'utf8'))", 2),
    ("INITCAP('  hello wORLD')", "Hello World"),
    ("REPLACE('aXbX', 'X', '--')", "a--b--"),
    ("SUBSTRING('stream', 1)", "stream"),
    ("SUBSTRING('stream', 0)", "stream"),
    ("SUBSTRING('stream', -2)", "am"),
    ("SUBSTRING('stream', -20, 3)", "str"),
    ("SUBSTRING('stream', 3, 2)", "re"),
    ("SUBSTRING('stream', 3, -2)", ""),
    ("SUBSTRING('stream', 100)", ""),
    ("SUBSTRING('stream', CAST(NULL AS INT))", None),
    ("FROM_BYTES(SUBSTRING(TO_BYTES('abcd', 'ascii'), 2, 2), 'ascii')", "bc"),
    ("INSTR('CORPORATE FLOOR', 'OR')", 2),
    ("INSTR('CORPORATE FLOOR', 'OR', 3)", 5),
    ("INSTR('CORPORATE FLOOR', 'OR', 3, 2)", 14),
    ("INSTR('CORPORATE FLOOR', 'OR', -3)", 5),
    ("INSTR('CORPORATE FLOOR', 'OR', -3, 2)", 2),
    ("INSTR('CORPORATE FLOOR', 'XX')", 0),
    ("INSTR('abc', 'c', 4)", 0),
    (f"INSTR({NULL}, 'a')", 0),
    ("CONCAT('a', NULL, 'b')", "ab"),
    (f"CONCAT({NULL}, {NULL})", ""),
    ("'a' + 'b'", "ab"),
    (f"'a' + {NULL}", FAILS),
    ("CONCAT_WS('-', 'a', NULL, 'b')", "a-b"),
    (f"CONCAT_WS({NULL}, 'a', 'b')", None),
    ("CONCAT_WS('-', 'a')", "a"),
    ("LPAD('foo', 7, 'Bar')", "BarBfoo"),
    ("LPAD('foo', 2, 'Bar')", "fo"),
    ("LPAD('foo', 0, 'Bar')", ""),
    ("LPAD('foo', -1, 'Bar')", None),
    ("LPAD('foo', 7, '')", None),
    ("LPAD('foo', 2000000000, 'x')", FAILS),
    ("RPAD('foo', 7, 'Bar')", "fooBarB"),
    ("RPAD('foo', 2, 'Bar')", "fo"),
    ("FROM_BYTES(RPAD(TO_BYTES('0a', 'hex'), 3, TO_BYTES('ff', 'hex')), 'hex')", "0AFFFF"),
    ("SPLIT('a,b,,c,', ',')", ["a", "b", "", "c", ""]),
    ("SPLIT('', ',')", [""]),
    ("SPLIT('abc', '')", ["a", "b", "c"]),
    (f"SPLIT('abc', {NULL})", None),
    ("SPLIT(TO_BYTES('a.b', 'ascii'), TO_BYTES('.', 'ascii'))", [b"a", b"b"]),
    ("SPLIT(TO_BYTES('ab', 'ascii'), TO_BYTES('', 'ascii'))", [b"a", b"b"]),
    ("SPLIT_TO_MAP('a=1;b=2;a=3;x;;', ';', '=')", {"a": "3", "b": "2"}),
    ("SPLIT_TO_MAP('a=1', ';', ';')", None),
    ("SPLIT_TO_MAP('a=1', '', '=')", None),
    ("SPLIT_TO_MAP('a=1=2', ';', '=')", {"a": "1"}),
    ("CHR(75)", "K"),
    ("CHR(-1)", None),
    ("CHR(1114112)", None),
    (r"CHR('\u004b')", "K"),
    (r"CHR('\ud83d\ude00')", "😀"),
    ("CHR('K')", None),
    ("MD5('abc')", "900150983cd24fb0d6963f7d28e17f72"),
    ("ELT(2, 'a', 'b')", "b"),
    ("ELT(3, 'a', 'b')", None),
    ("ELT(0, 'a', 'b')", None),
    ("FIELD('b', 'a', 'b')", 2),
    ("FIELD('x', 'a', 'b')", 0),
    (f"FIELD({NULL}, 'a', 'b')", 0),
    ("MASK('My Test $123')", "Xx-Xxxx--nnn"),
    ("MASK('My Test $123', '*', NULL, '1', NULL)", "*y *est $111"),
    ("MASK('a', 'too long', NULL, NULL, NULL)", FAILS),
    ("MASK_LEFT('My Test $123', 4)", "Xx-Xest $123"),
    ("MASK_RIGHT('My Test $123', 4)", "My Test -nnn"),
    ("MASK_KEEP_LEFT('My Test $123', 4)", "My Txxx--nnn"),
    ("MASK_KEEP_RIGHT('My Test $123', 4)", "Xx-Xxxx-$123"),
    ("MASK_KEEP_RIGHT('abc', 40)", "abc"),
    ("MASK_LEFT('abc', -1)", FAILS),
    (f"MASK({NULL})", None),
]

BYTES: list[tuple[str, Any]] = [
    ("TO_BYTES('0A1b', 'HEX')", b"\x0a\x1b"),
    ("TO_BYTES('0A1', 'hex')", FAILS),
    ("TO_BYTES('YWI=', 'base64')", b"ab"),
    ("TO_BYTES('YWI', 'base64')", b"ab"),
    ("TO_BYTES('YQ=', 'base64')", FAILS),
    ("TO_BYTES('YQYQ=', 'base64')", FAILS),
    ("TO_BYTES('Y', 'base64')", FAILS),
    ("TO_BYTES('*', 'base64')", FAILS),
    ("TO_BYTES('a', 'ebcdic')", FAILS),
    (f"TO_BYTES({NULL}, 'hex')", None),
    ("FROM_BYTES(TO_BYTES('é', 'utf8'), 'ascii')", "\ufffd\ufffd"),
    ("FROM_BYTES(TO_BYTES('0A1b', 'hex'), 'hex')", "0A1B"),
    (f"FROM_BYTES({NO_BYTES}, 'hex')", None),
    ("ENCODE('4578616d706c6521', 'hex', 'ascii')", "Example!"),
    ("ENCODE('0x4578616d706c6521', 'hex', 'base64')", "RXhhbXBsZSE="),
    ("ENCODE('X''4578''', 'hex', 'utf8')", "Ex"),
    ("ENCODE('Ex', 'utf8', 'hex')", "4578"),
    ("ENCODE('RXg', 'base64', 'ascii')", "Ex"),
    ("ENCODE('Ex', 'utf8', 'utf8')", FAILS),
    ("INT_FROM_BYTES(TO_BYTES('00000ABC', 'hex'))", 2748),
    ("INT_FROM_BYTES(TO_BYTES('FFFFFFFE', 'hex'))", -2),
    ("INT_FROM_BYTES(TO_BYTES('01000000', 'hex'), 'LITTLE_ENDIAN')", 1),
    ("INT_FROM_BYTES(TO_BYTES('01', 'hex'))", FAILS),
    ("INT_FROM_BYTES(TO_BYTES('01000000', 'hex'), 'MIDDLE')", FAILS),
    ("BIGINT_FROM_BYTES(TO_BYTES('0000000100000000', 'hex'))", 2**32),
    ("DOUBLE_FROM_BYTES(TO_BYTES('4045000000000000', 'hex'))", 42.0),
    ("UUID(TO_BYTES('00112233445566778899aabbccddeeff', 'hex'))", "00112233-4455-6677-8899-aabbccddeeff"),
    ("UUID(TO_BYTES('00', 'hex'))", None),
    ("CAST('YWI=' AS BYTES)", b"ab"),
]

REGEXES: list[tuple[str, Any]] = [
    ("REGEXP_EXTRACT('ksql.*', 'ksqlDB')", "ksqlDB"),
    ("REGEXP_EXTRACT('(.*) (.*)', 'hello there', 2)", "there"),
    ("REGEXP_EXTRACT('(.*) (.*)', 'hello there', 3)", None),
    ("REGEXP_EXTRACT('x', 'hello')", None),
    ("REGEXP_EXTRACT('(h)', 'hello', -1)", FAILS),
    ("REGEXP_EXTRACT('(', 'hello')", FAILS),
    (f"REGEXP_EXTRACT({NULL}, 'hello')", None),
    (r"REGEXP_EXTRACT_ALL('(\w+) (\w+)', 'hello there nice day', 2)", ["there", "day"]),
    ("REGEXP_EXTRACT_ALL('x', 'hello')", []),
    (r"REGEXP_EXTRACT_ALL('\b', '  ab')", ["", ""]),
    ("REGEXP_REPLACE('aabbaa', '(a)(a)', '$2-$1')", "a-abba-a"),
    ("REGEXP_REPLACE('baaac', 'a*', '-')", "-b--c-"),
    (r"REGEXP_REPLACE('a1', '\d', '\$x')", "a$x"),
    ("REGEXP_REPLACE('a1', 'a', '$2')", FAILS),
    ("REGEXP_REPLACE('ab', '(?<x>a)b', '${x}${x}')", "aa"),
    ("REGEXP_SPLIT_TO_ARRAY('aabcda', '(ab|cd)')", ["a", "", "a"]),
    ("REGEXP_SPLIT_TO_ARRAY('aabcd', '')", ["a", "a", "b", "c", "d"]),
    ("REGEXP_SPLIT_TO_ARRAY('x', 'y')", ["x"]),
    ("REGEXP_SPLIT_TO_ARRAY('x-y', '.')", ["", "", "", ""]),
    ("REGEXP_SPLIT_TO_ARRAY('AB', '^')", ["AB"]),
    ("REGEXP_REPLACE('abc', '', 'n')", "nanbncn"),
    ("REGEXP_REPLACE('ab', '(?=b)|a*?', '-')", "-a-b-"),
    ("REGEXP_EXTRACT_ALL('(a)(b)?', 'ab a', 2)", ["b", None]),
    (r"REGEXP_EXTRACT_ALL('\b\w', 'ab été', 0)", ["a"]),
    (r"REGEXP_REPLACE('été ab', '\b', '|')", "|été| |ab|"),
    # what RE2 does not have
    ("REGEXP_EXTRACT('(?<=a)b+', 'abbc')", "bb"),
    ("REGEXP_EXTRACT('a(?!b).', 'abac')", "ac"),
    (r"REGEXP_EXTRACT('(.)\1', 'abccd')", "cc"),
    ("REGEXP_EXTRACT('a++b', 'aab')", "aab"),
    ("REGEXP_EXTRACT('[a-z&&[^bc]]+', 'bcad')", "ad"),
    (r"REGEXP_EXTRACT('\p{Alpha}+', '12ab')", "ab"),
    (r"REGEXP_EXTRACT('\p{Lu}+', '12abÄÖ')", "ÄÖ"),
    (r"REGEXP_EXTRACT('[^\d\s]+', '12 abÄ')", "abÄ"),
    (r"REGEXP_EXTRACT('\Qa.b\E', 'axb a.b')", "a.b"),
    (r"REGEXP_EXTRACT('[\w&&\D]+', '12ab')", "ab"),
    ("REGEXP_EXTRACT('(?i)AB', 'xab')", "ab"),
    ("REGEXP_EXTRACT('a.c', 'a' + CHR(10) + 'c')", None),
    # what would never end is refused
    ("REGEXP_EXTRACT('(?=a)(a+)+$', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab')", FAILS),
    (r"REGEXP_EXTRACT('(a|a)*\1c', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab')", FAILS),
    ("REGEXP_EXTRACT('(a+)+$', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab')", None),
]


@pytest.mark.parametrize(("text", "wanted"), TEXTS + BYTES + REGEXES, ids=lambda value: str(value)[:60])
def test_functions_of_texts(text: str, wanted: Any) -> None:
    assert value_of(text) == wanted


def test_both_engines_find_the_same() -> None:
    """Expressions that RE2 takes are found by Python's engine, too, in the spelling that is meant for it."""
    random = Random(7)
    atoms = [
        "a",
        "b",
        ".",
        "[ab]",
        "[^a]",
        r"\d",
        r"\w",
        "(",
        "(?:",
        ")",
        "|",
        "*",
        "+",
        "?",
        "{1,2}",
        "^",
        r"\.",
        "é",
        r"[\w-]",
        "a*?",
    ]
    compared = 0
    for _ in range(1000):
        pattern = "".join(random.choice(atoms) for _ in range(random.randint(1, 6)))
        try:
            one, other = java_regex._for_re2(pattern), java_regex._for_python(pattern)
        except (FunctionFailed, OnlyBacktracking):
            continue
        for text in ("", "abcab", "aaab bbb", "éA1 \n x"):
            assert [found.span() for found in one.finditer(text)] == [
                found.span() for found in other.finditer(text)
            ], pattern
        compared += 1
    assert compared > 150
