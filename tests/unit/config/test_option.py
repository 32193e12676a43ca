import pytest

from penstock.config.option import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    READ_ONLY,
    SHORT,
    STRING,
    Check,
    ConfigError,
    Kind,
    Option,
    at_least,
    between,
    between_or,
    format_value,
    java_double,
    not_empty,
    one_of,
    parse_value,
    throttled_replicas,
)


def refusal_of(kind: Kind, text: str, check: Check | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        Option("x.y", kind, None, check, READ_ONLY, "").parse(text)
    return str(caught.value)


def accepts(kind: Kind, text: str, check: Check | None = None) -> bool:
    Option("x.y", kind, None, check, READ_ONLY, "").parse(text)
    return True


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, "true", True),
        (BOOLEAN, " FALSE ", False),
        (INT, "2147483647", 2**31 - 1),
        (INT, " 12 ", 12),
        (INT, "+12", 12),
        (INT, "0012", 12),
        (SHORT, "-32768", -(2**15)),
        (LONG, "-9223372036854775808", -(2**63)),
        (DOUBLE, "1", 1.0),
        (DOUBLE, "0.5f", 0.5),
        (DOUBLE, "1d", 1.0),
        (DOUBLE, "1e10", 1e10),
        (LIST, "", []),
        (LIST, "  ", []),
        (LIST, "a , b,c", ["a", "b", "c"]),
        (LIST, "a,b,a", ["a", "b"]),
        (STRING, " text ", "text"),
        (CLASS, "a.b.C", "a.b.C"),
        (PASSWORD, "secret", "secret"),
    ],
)
def test_text_becomes_a_typed_value(kind: Kind, text: str, value: object) -> None:
    parsed = parse_value("x", kind, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        (LONG, "abc", "Not a number of type LONG"),
        (LONG, "1.5", "Not a number of type LONG"),
        (LONG, "", "Not a number of type LONG"),
        (LONG, "9223372036854775808", "Not a number of type LONG"),
        (LONG, "9" * 5000, "Not a number of type LONG"),
        (INT, "99999999999", "Not a number of type INT"),
        (INT, "1_000", "Not a number of type INT"),
        (SHORT, "40000", "Not a number of type SHORT"),
        (DOUBLE, "abc", "Not a number of type DOUBLE"),
        (DOUBLE, "", "Not a number of type DOUBLE"),
        (DOUBLE, "1_0.5", "Not a number of type DOUBLE"),
        (DOUBLE, "inf", "Not a number of type DOUBLE"),
        (DOUBLE, "nan", "Not a number of type DOUBLE"),
        (BOOLEAN, "yes", "Expected value to be either true or false"),
        (BOOLEAN, "", "Expected value to be either true or false"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_kafkas_words(kind: Kind, text: str, why: str) -> None:
    assert refusal_of(kind, text) == f"Invalid value {text} for configuration x.y: {why}"


def test_a_list_with_a_gap_is_refused() -> None:
    assert refusal_of(LIST, "a,,b") == "Configuration 'x.y' values must not be empty."
    assert refusal_of(LIST, "a,") == "Configuration 'x.y' values must not be empty."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.000123, "1.23E-4"),
        (1e7, "1.0E7"),
        (9999999.5, "9999999.5"),
        (12345678.5, "1.23456785E7"),
        (1e10, "1.0E10"),
        (1e22, "1.0E22"),
        (-2.5e30, "-2.5E30"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "5.0E-324"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_a_double_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (BOOLEAN, True, "true"),
        (BOOLEAN, False, "false"),
        (LIST, ["a", "b"], "a,b"),
        (LIST, [], ""),
        (LONG, -1, "-1"),
        (DOUBLE, 0.5, "0.5"),
        (STRING, "s", "s"),
        (STRING, None, None),
    ],
)
def test_a_typed_value_has_kafkas_text(kind: Kind, value: object, text: str | None) -> None:
    assert format_value(kind, value) == text


def test_a_range_names_the_bound_that_was_passed() -> None:
    check = between(1, 17)
    assert refusal_of(INT, "0", check) == "Invalid value 0 for configuration x.y: Value must be at least 1"
    assert (
        refusal_of(INT, "18", check)
        == "Invalid value 18 for configuration x.y: Value must be no more than 17"
    )
    assert accepts(INT, "17", check)
    assert accepts(INT, "1", at_least(1))


def test_a_range_of_doubles_shows_the_value_as_a_double() -> None:
    text = refusal_of(DOUBLE, "2", between(0, 1))
    assert text == "Invalid value 2.0 for configuration x.y: Value must be no more than 1"


def test_a_range_may_allow_one_value_outside() -> None:
    check = between_or(1, 9, also=-1)
    assert accepts(INT, "-1", check)
    text = refusal_of(INT, "0", check)
    assert text == "Invalid value 0 for configuration x.y: Value must be between 1 and 9 or equal to -1"


def test_a_choice_is_strict_about_case_unless_told_otherwise() -> None:
    text = refusal_of(STRING, "GZIP", one_of("gzip", "lz4"))
    assert text == "Invalid value GZIP for configuration x.y: String must be one of: gzip, lz4"
    loose = one_of("UPGRADE", "DISABLED", any_case=True)
    assert accepts(STRING, "upgrade", loose)
    expected = (
        "Invalid value foo for configuration x.y: String must be one of (case insensitive): UPGRADE, DISABLED"
    )
    assert refusal_of(STRING, "foo", loose) == expected


def test_a_choice_blames_the_one_wrong_item_of_a_list() -> None:
    text = refusal_of(LIST, "delete,bogus", one_of("compact", "delete"))
    assert text == "Invalid value bogus for configuration x.y: String must be one of: compact, delete"


def test_a_list_may_have_to_hold_something() -> None:
    expected = "Configuration 'x.y' must not be empty. Valid values include: any non-empty value"
    assert refusal_of(LIST, "", not_empty()) == expected


@pytest.mark.parametrize("text", ["", "*", "0:1", "0:1,1:2"])
def test_throttled_replicas_are_pairs_or_a_star(text: str) -> None:
    assert accepts(LIST, text, throttled_replicas())


@pytest.mark.parametrize("text", ["abc", "none", "*,0:1", "1", "a:b"])
def test_anything_else_is_no_throttled_replica(text: str) -> None:
    assert "must be the literal '*' or a list of replicas" in refusal_of(LIST, text, throttled_replicas())
