"""What can go wrong for a person at the command line. Each becomes one line and an exit code; none a stack trace."""

TRACE_VARIABLE = "PENSTOCK_TRACE"


def unexpected(error: Exception) -> str:
    """What a person sees of a bug of ours: one line, and how to see more."""
    return f"unexpected {type(error).__name__}: {error} ({TRACE_VARIABLE}=1 shows where)"


class UserError(Exception):
    """Something the user gave cannot be used: a file, a value, an option."""


class Unreachable(Exception):
    """No broker answers at the given addresses."""


class Refused(Exception):
    """The cluster answered with an error. `exception_name` is the Java class that Kafka's own tools would print."""

    def __init__(self, detail: str, *, code: int = -1, exception_name: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.exception_name = exception_name
