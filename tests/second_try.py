"""Runs pytest, and then once more what failed, alone: `python -m tests.second_try` with pytest's own arguments.

Tests with real processes share two cores. One that fails only beside others is a bug too (mostly a bet on time), but it
is not a reason to refuse a change that has nothing to do with it. So tests that failed run once more, one after the other and
with nothing beside. Who passes then is listed as "failed beside others, passed alone", below the text of the failure. Who
fails again fails the run. There is no second try where it could hide something:

- more than `MAX_FAILURES` failures, or a run that was interrupted or could not collect its tests;
- a failure when fixtures are taken down: there brokers say that they logged a bug of their own.
"""

from __future__ import annotations

import sys

import pytest

MAX_FAILURES = 12


class Failures:
    """A pytest plugin that keeps the names of the tests that failed."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}  # in order, each once
        self.is_beyond_second_try = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names[report.nodeid] = None
            self.is_beyond_second_try |= report.when == "teardown"


def main(arguments: list[str]) -> int:
    failures = Failures()
    code = pytest.main(arguments, plugins=[failures])
    if code != pytest.ExitCode.TESTS_FAILED or not failures.names or failures.is_beyond_second_try:
        return int(code)
    if len(failures.names) > MAX_FAILURES:
        print(f"\n{len(failures.names)} tests failed: too many for a second try")
        return int(code)
    print(f"\nsecond try, alone, of {len(failures.names)}:", flush=True)
    again = Failures()
    code = pytest.main(["-q", *failures.names], plugins=[again])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return int(code)
    passed = [name for name in failures.names if name not in again.names]
    if passed:
        print("\nfailed beside others, passed alone (each is a bug to mend; the failure is above):")
        print(*passed, sep="\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
