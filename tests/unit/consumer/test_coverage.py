"""A group is not looked at where our own client cannot log in; that is told once."""

from typing import Any

import pytest

from penstock.consumer.coverage import Coverage


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"security.protocol": "sasl_ssl", "sasl.mechanisms": "NTLM"}, "'NTLM' cannot be used here"),
        ({"security.protocol": "SASL_SSL", "oauth_cb": print}, "sasl.mechanism: must be given"),
    ],
)
def test_a_group_is_not_looked_at_where_our_client_cannot_log_in(
    settings: dict[str, Any], complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    nobody: Any = None
    settings = {"bootstrap.servers": "127.0.0.1:1", **settings}
    coverage = Coverage(nobody, settings, "group", ["orders"], wait_s=0.0)
    caplog.set_level("INFO", "penstock.consumer")
    for _ in range(2):
        coverage.assigned()
        assert coverage.neglected() == []
    (told,) = caplog.messages
    assert complaint in told


def test_a_cluster_that_does_not_answer_is_asked_again_later() -> None:
    nobody: Any = None
    coverage = Coverage(nobody, {"bootstrap.servers": "127.0.0.1:1"}, "group", ["orders"], wait_s=60.0)
    coverage._due_s = 0.0
    assert coverage.neglected() == []
    assert coverage._due_s > 0.0
