"""What Spark reads when a batch of `to_topic` was not saved."""

from penstock.spark.internals.saving import INTERRUPTED, NotSaved

BEGINNING = "py4j.protocol.Py4JJavaError: An error occurred while calling save: "


def test_a_batch_that_was_interrupted_says_so_in_the_words_that_spark_looks_for() -> None:
    assert str(NotSaved(INTERRUPTED)) == BEGINNING + INTERRUPTED


def test_a_worker_that_is_gone_may_mean_that_the_query_was_stopped() -> None:
    told = str(NotSaved("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)."))
    assert told.startswith(BEGINNING)
    assert told.endswith(INTERRUPTED)


def test_a_failure_is_told_without_its_stack_trace() -> None:
    told = str(
        NotSaved("a.SparkException: Job aborted\n" + "\tat a.b.c\n" * 10_000 + "Caused by: a full disk")
    )
    assert told == f"{BEGINNING}a.SparkException: Job aborted\nCaused by: a full disk"
