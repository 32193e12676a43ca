import pytest

from penstock.model.errors import ApiError, ErrorCode
from penstock.telemetry.subscriptions import (
    ClientIdentity,
    Subscribed,
    check_subscription,
    read_subscription,
    subscribed,
)

JAVA = ClientIdentity(
    "AAAAAAAAAAAAAAAAAAAAAg", "billing-7", "apache-kafka-java", "4.3.1", "10.0.0.1", "40000"
)


# What Apache Kafka 4.3.1 said.
@pytest.mark.parametrize(
    ("name", "value", "code", "detail"),
    [
        ("nonsense", "1", ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nonsense"),
        (
            "interval.ms", "10", ErrorCode.INVALID_REQUEST,
            "Invalid value 10 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            "interval.ms", "abc", ErrorCode.INVALID_CONFIG,
            "Invalid value abc for configuration interval.ms: Not a number of type INT",
        ),
        ("match", "foo=bar", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: foo=bar"),
        ("match", "client_id", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id"),
        ("match", "client_id=[", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=["),
        ("match", "client_id=a=b", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=a=b"),
    ],
)  # fmt: skip
def test_what_no_subscription_can_have_is_refused_in_kafkas_words(
    name: str, value: str, code: ErrorCode, detail: str
) -> None:
    with pytest.raises(ApiError) as caught:
        check_subscription({name: value})
    assert (caught.value.code, caught.value.detail) == (code, detail)


@pytest.mark.parametrize(
    ("match", "is_matched"),
    [
        ("", True),
        ("client_id=billing-.*", True),
        ("client_id=billing", False),
        ("client_software_name=apache-.*, client_software_version=4\\..*", True),
        ("client_software_name=apache-.*,client_id=other", False),
        ("client_source_address=10\\.0\\.0\\.\\d+,client_source_port=40000", True),
        (f"client_instance_id={JAVA.client_instance_id}", True),
    ],
)
def test_all_selectors_must_match_the_whole_of_a_value(match: str, is_matched: bool) -> None:
    assert read_subscription({"match": match} if match else {}).matches(JAVA) is is_matched


def test_a_client_that_did_not_say_its_library_matches_no_pattern_for_it() -> None:
    silent = JAVA._replace(client_software_name=None)
    assert not read_subscription({"match": "client_software_name=.*"}).matches(silent)


def test_a_client_gets_all_that_matching_subscriptions_ask_for_at_the_shortest_interval() -> None:
    asked = [
        {"metrics": "b.,a.", "interval.ms": "60000", "match": "client_id=billing-.*"},
        {"metrics": "c.,a.", "interval.ms": "5000"},
        {"metrics": "d.", "interval.ms": "100", "match": "client_id=other"},
    ]
    found = subscribed(JAVA, map(read_subscription, asked))
    assert found == Subscribed(("a.", "b.", "c."), 5_000)
    assert subscribed(JAVA, []) == Subscribed((), 300_000)
    everything = subscribed(JAVA, map(read_subscription, [*asked, {"metrics": "*"}]))
    assert everything.metrics == ("*",)
    slow = subscribed(JAVA, [read_subscription({"metrics": "a.", "interval.ms": "3600000"})])
    assert slow.interval_ms == 300_000  # as in Kafka
