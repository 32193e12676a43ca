"""What the wire layer raises about bytes that came from outside."""


class Malformed(ValueError):
    """The bytes are no message of the kind and version they claim to be. The reason fits one log line."""
