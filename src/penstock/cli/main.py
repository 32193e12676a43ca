"""The `penstock` command. The broker must start in a blink, so it is sent on its way before click is imported."""

import sys


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["broker"]:
        from penstock.cli.broker import main as broker_main

        return broker_main(words[1:])
    from penstock.cli.verbs.app import run

    return run(words)


def ksql() -> int:
    """The `ksql` command: the prompt for SQL servers."""
    from penstock.cli.ksql.command import ksql as command
    from penstock.cli.verbs.app import run

    return run(sys.argv[1:], command, "ksql")
