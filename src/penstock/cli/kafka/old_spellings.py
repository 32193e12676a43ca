"""Options that Kafka has renamed: the old name is read as the new one, with a warning in Kafka's words."""

from penstock.cli.kafka.options import Options, UsageError

HAS_BEEN_DEPRECATED = (
    "Option --{} has been deprecated and will be removed in a future version. Use --{} instead."
)


def modernise(given: Options, spellings: dict[str, str], warning: str = HAS_BEEN_DEPRECATED) -> None:
    """Both spellings at once are refused."""
    for old, new in spellings.items():
        if given.has(old):
            if given.has(new):
                raise UsageError(f"Options --{new} and --{old} cannot be specified together.")
            print(warning.format(old, new), flush=True)
            for value in given.values(old):
                given.add(new, value)
