"""Tools whose first word is a command with options of its own. An option may stand before or after the command."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.cli.kafka.options import (
    BOOTSTRAP,
    CLIENT_OPTIONS,
    Option,
    OptionError,
    Options,
    OptionTable,
    UsageError,
)


class Subcommand(NamedTuple):
    purpose: str
    options: list[Option]
    required: list[str]
    example: str


class Subcommands:
    """The commands of one tool. `default` is the command where none is named."""

    def __init__(
        self,
        tool: str,
        purpose: str,
        commands: Mapping[str, Subcommand],
        *,
        client_options: Sequence[Option] = CLIENT_OPTIONS,
        old_spellings: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        default: str | None = None,
        help_code: int = 1,
    ) -> None:
        self._tool = tool
        self._commands = commands
        self._client_options = client_options
        self._old_spellings = old_spellings
        self._aliases = aliases or {}
        self._help_code = help_code
        self._default = default
        width = max(map(len, commands)) + 1
        described = [f"  {name:<{width}} {command.purpose}" for name, command in commands.items()]
        options = {option.name: option for command in commands.values() for option in command.options}
        self.table = self._table(
            "\n".join([purpose, "Commands:", *described]),
            list(options.values()),
            [command.example for command in commands.values()],
        )

    def _table(self, purpose: str, options: list[Option], examples: list[str]) -> OptionTable:
        start = self._tool
        if any(option.name == BOOTSTRAP.name for option in self._client_options):
            start += " --bootstrap-server localhost:9092"
        names = {option.name for option in options}
        return OptionTable(
            self._tool,
            purpose,
            options,
            client_options=self._client_options,
            old_spellings=self._old_spellings,
            aliases={old: new for old, new in self._aliases.items() if new in names},
            help_code=self._help_code,
            examples=[f"{start} {example}" for example in examples],
        )

    def table_for(self, argv: list[str]) -> OptionTable:
        """The table of the command that is named; of all of them where none is."""
        try:
            words = self.table.parse(argv).words
        except OptionError:
            return self.table
        if not words or words[0] not in self._commands:
            return self.table
        command = self._commands[words[0]]
        return self._table(command.purpose, command.options, [command.example])

    def check(self, given: Options) -> str:
        """The command; UsageError when something that it needs is missing."""
        command = given.words[0] if given.words else self._default
        if command is None:
            raise UsageError("too few arguments: name a command")
        if command not in self._commands:
            raise UsageError(f"invalid choice: '{command}' (choose from {', '.join(self._commands)})")
        address = [BOOTSTRAP.name] if BOOTSTRAP in self._client_options else []
        for name in (*address, *self._commands[command].required):
            if not given.has(name):
                raise UsageError(f"argument --{name} is required")
        return command
