"""Settings of programs: in either dialect, checked before a client is made."""

from __future__ import annotations

import pytest

from penstock.client.errors import BadOption
from penstock.client.librdkafka_settings import librdkafka_settings
from penstock.consumer import Processor

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ana" password="hu\\"sh";'


def test_javas_names_become_librdkafkas() -> None:
    given = {"fetch.max.wait.ms": 5, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256",
             "sasl.jaas.config": SCRAM}  # fmt: skip
    assert librdkafka_settings(given, role="consumer") == {
        "fetch.wait.max.ms": "5",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "ana",
        "sasl.password": 'hu"sh',
    }


def test_librdkafkas_own_names_and_functions_stay() -> None:
    given = {
        "error_cb": print,
        "queued.min.messages": 7,
        "check.crcs": False,
        "enable.ssl.certificate.verification": "false",
    }
    expected = {**given, "queued.min.messages": "7", "check.crcs": "false"}
    assert librdkafka_settings(given, role="producer") == expected


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"sasl.mechanizm": "PLAIN"},
            "sasl.mechanizm: there is no such property; did you mean sasl.mechanism?",
        ),
        ({"retry.backoff.ms": "soon"}, "retry.backoff.ms: must be a number, not 'soon'"),
    ],
)
def test_a_processor_names_the_setting_that_cannot_be(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption) as caught:
        Processor("orders", group="g", handler=print, settings=settings)
    assert str(caught.value) == complaint
