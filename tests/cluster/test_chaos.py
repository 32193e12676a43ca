"""The fault run of `make chaos`, short: real kills and pauses under load, then every record is looked at."""

from pathlib import Path

from penstock.testing.chaos.run import Settings, run_chaos


def test_half_a_minute_of_kills_and_pauses_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    report = run_chaos(Settings(seconds=30, seed=4, rate=1_000), tmp_path)
    assert report.problems == []
    assert report.ledger.examples == []
    assert report.is_clean
    assert report.ledger.acknowledged_count > 1_000
    assert report.faults.total() >= 3
