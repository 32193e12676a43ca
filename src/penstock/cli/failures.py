"""What can go wrong for a person at the command line. Each becomes one line and an exit code; none a stack trace."""


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
