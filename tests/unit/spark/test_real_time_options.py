"""What the real-time tier tells the Java client that the user has not."""

from penstock.spark.tiers.real_time import real_time_source


def test_a_question_about_a_leader_that_died_does_not_take_a_minute() -> None:
    options = real_time_source({"subscribe": "orders"})
    assert options["kafka.default.api.timeout.ms"] == options["kafka.request.timeout.ms"] == "10000"
    patience_ms = int(options["kafka.default.api.timeout.ms"]) * int(options["fetchOffset.numRetries"])
    assert patience_ms >= 120_000, "all of them together are as patient as before"


def test_a_time_that_the_user_names_is_not_paired_with_one_of_ours() -> None:
    options = real_time_source({"kafka.Request.Timeout.ms": "45000"})
    assert "kafka.default.api.timeout.ms" not in options
    assert "kafka.request.timeout.ms" not in options
