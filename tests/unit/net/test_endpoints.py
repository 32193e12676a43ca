import pytest

from penstock.model.endpoints import Endpoint
from penstock.net.endpoints import parse_endpoints, security_protocol


def test_listeners_are_written_as_in_kafka() -> None:
    assert parse_endpoints("PLAINTEXT://:9092, external://host.example:19092,V6://[::1]:5", "listeners") == [
        Endpoint("PLAINTEXT", "", 9092),
        Endpoint("EXTERNAL", "host.example", 19092),
        Endpoint("V6", "::1", 5),
    ]


@pytest.mark.parametrize(
    "text",
    ["host:9092", "PLAINTEXT://host", "PLAINTEXT://h:99999", "A://:1,A://:2", "A://:1,B://:1", "A://h:-1"],
)
def test_a_listener_that_makes_no_sense_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="listeners: "):
        parse_endpoints(text, "listeners")


def test_a_listener_has_its_own_protocol_or_one_from_the_map() -> None:
    assert security_protocol("PLAINTEXT", "") == "PLAINTEXT"
    assert security_protocol("EXTERNAL", "INTERNAL:SSL,external:PLAINTEXT") == "PLAINTEXT"
    with pytest.raises(ValueError, match=r"listener\.security\.protocol\.map"):
        security_protocol("EXTERNAL", "INTERNAL:SSL")


@pytest.mark.parametrize("protocol", ["TLS", "", "SALS_SSL", "SASL_TLS", "SASL_SSL:x"])
def test_a_misspelt_protocol_opens_nothing(protocol: str) -> None:
    with pytest.raises(ValueError, match=r"listener\.security\.protocol\.map"):
        security_protocol("OUTSIDE", f"INSIDE:PLAINTEXT,OUTSIDE:{protocol}")
