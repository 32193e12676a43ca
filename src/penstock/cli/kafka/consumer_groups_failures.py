"""How kafka-consumer-groups says that something went wrong: on stdout, and with the exit code 0, as Kafka's own does."""

from penstock.cli.failures import Refused, UserError


class CommandFailed(UserError):
    """What Kafka's tool words as `Executing consumer group command failed due to …`."""


def named(error: Refused) -> str:
    return f"{error.exception_name}: {error}"


def print_error(sentence: str) -> None:
    print(f"\nError: {sentence}", flush=True)
