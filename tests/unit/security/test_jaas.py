"""Java's login lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.jaas import BadJaas, parse_file, parse_login


def test_quoted_unquoted_and_escaped_values_are_read() -> None:
    module = parse_login(
        "org.apache.kafka.common.security.plain.PlainLoginModule required\n"
        '  username=admin password="a \\"b\\" \\\\c; d"\n  user_admin="x" user_ana=y;'
    )
    assert module.name.endswith("PlainLoginModule")
    assert module.options["password"] == 'a "b" \\c; d'
    assert module.users() == {"admin": "x", "ana": "y"}
    assert "a \\" not in repr(module)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "class is missing"),
        ("Plain", "flag behind the class"),
        ("Plain sometimes;", "must stand required"),
        ('Plain required\nusername="ana"', "line 2: ';' is missing"),
        ('Plain required username "ana";', "'=' is missing"),
        ('Plain required password="s3cret', "line 1: a quote is opened"),
        ("Plain required; Plain required;", "more than one"),
        ("s3cret", "flag behind the class"),
        ("s3cret ana;", "behind the login module's class must stand"),
        ("Plain required password= s3cret=", "'=' is missing"),
        ('Plain required password="" s3cret=', "value of an option is missing"),
        ("Plain required s3cret;", "'=' is missing"),
    ],
)
def test_mistakes_name_their_line_and_no_secret(text: str, complaint: str) -> None:
    with pytest.raises(BadJaas, match=complaint) as caught:
        parse_login(text)
    assert "s3cret" not in str(caught.value)


def test_files_have_sections() -> None:
    sections = parse_file(
        "// who\nKafkaServer {\n  Plain required user_a=b;\n};\nClient { Digest required username=z; };\n"
    )
    assert [len(modules) for modules in sections.values()] == [1, 1]
    assert sections["KafkaServer"][0].users() == {"a": "b"}


@given(st.text(alphabet='ab="\\;{} \n#/*required', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_login, parse_file):
        try:
            parse(text)
        except BadJaas:
            pass
