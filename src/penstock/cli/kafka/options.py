"""Options as Kafka's tools read them (joptsimple's habits), and the help that is written from the same table.

`--name value`, `--name=value`, `-name value`; an option that needs a value takes the next word even when it begins
with a dash (`--time -1`); words that belong to no option are ignored; `--` ends the options. More generous than
Kafka: an abbreviation that can mean only one option is taken for it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

HELP_WIDTH = 100
NAME_COLUMN_WIDTH = 44
HAS_BEEN_DEPRECATED = (
    "Option --{} has been deprecated and will be removed in a future version. Use --{} instead."
)


class Option(NamedTuple):
    name: str
    doc: str
    value: str | None = None
    """What the value is called in the help; None makes the option a flag."""
    default: str | None = None
    value_is_optional: bool = False
    old: bool = False
    """A spelling of older Kafka versions: understood, not shown in the help."""


class OptionError(Exception):
    """The command line cannot be understood; the message is joptsimple's."""


class UsageError(Exception):
    """The options do not go together; the message is shown above the help."""


class Options:
    """What was given on one command line."""

    def __init__(self, table: "OptionTable", argv: list[str]) -> None:
        self.table = table
        self.argv = argv
        self.words: list[str] = []
        """What belongs to no option. Most tools ignore it, as joptsimple does."""
        self._values: dict[str, list[str]] = {}

    def add(self, name: str, value: str | None) -> None:
        values = self._values.setdefault(name, [])
        if value is not None:
            values.append(value)

    def has(self, name: str) -> bool:
        return name in self._values

    def values(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def value(self, name: str) -> str | None:
        values = self._values.get(name)
        if not values:
            return self.table.by_name[name].default
        if len(values) > 1:
            raise OptionError(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0]

    def integer(self, name: str) -> int | None:
        text = self.value(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise OptionError(f"Cannot parse argument '{text}' of option {name}") from None

    def required_integer(self, name: str) -> int:
        """Of an option that is required or has a default."""
        number = self.integer(name)
        if number is None:
            raise UsageError(f'Missing required argument "[{name}]"')
        return number

    def number(self, name: str) -> float | None:
        """A finite one, with or without a fraction."""
        text = self.value(name)
        if text is None:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise OptionError(f"Cannot parse argument '{text}' of option {name}")
        return number

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                raise UsageError(f'Missing required argument "[{name}]"')

    def modernise(self, *names: str, warning: str = HAS_BEEN_DEPRECATED) -> None:
        """Reads old spellings (these, or all that the table has) as the new ones, with a warning in Kafka's words.

        Both spellings at once are refused.
        """
        for old in names or self.table.old_spellings:
            new = self.table.old_spellings[old]
            if not self.has(old):
                continue
            if self.has(new):
                raise UsageError(f"Options --{new} and --{old} cannot be specified together.")
            print(warning.format(old, new), flush=True)
            for value in self.values(old):
                self.add(new, value)

    def refuse_with(self, used: str, others: list[str]) -> None:
        if self.has(used):
            for other in others:
                if self.has(other):
                    raise UsageError(f'Option "[{used}]" can\'t be used with option "[{other}]"')


HELP = Option("help", "Show this help.")
VERSION = Option("version", "Show the version of Kafka that this tool stands for, and Penstock's own.")
BOOTSTRAP = Option(
    "bootstrap-server",
    "REQUIRED: where to connect: one or more brokers of the cluster.",
    "HOST:PORT[,HOST:PORT…]",
)
COMMAND_CONFIG = Option(
    "command-config",
    "A properties file for the client: security, timeouts and so on, with Kafka's names.",
    "FILE",
)


CLIENT_OPTIONS = (BOOTSTRAP, COMMAND_CONFIG)


class OptionTable:
    """The options of one tool. `client_options` are those of every tool that asks brokers; the tool's own of the same
    name win. `old_spellings` are options that Kafka has renamed, old name → new name: see `Options.modernise`; `aliases`
    are read as the new name without a word, unless that is given, too. With the `help_code` 0 help is no failure; to most
    of Kafka's tools it is one. Without words after its name a tool shows its help, unless it needs none."""

    def __init__(
        self,
        tool: str,
        purpose: str,
        options: list[Option],
        *,
        examples: list[str],
        client_options: Sequence[Option] = CLIENT_OPTIONS,
        old_spellings: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        help_code: int = 1,
        needs_words: bool = True,
    ) -> None:
        self.tool = tool
        self.purpose = purpose
        self.examples = examples
        self.old_spellings = old_spellings or {}
        self.aliases = aliases or {}
        self.help_code = help_code
        self.needs_words = needs_words
        self.by_name = {option.name: option for option in (*client_options, *options, HELP, VERSION)}
        for old, new in {**self.old_spellings, **self.aliases}.items():
            doc = f"The older spelling of --{new}."
            self.by_name[old] = self.by_name[new]._replace(name=old, doc=doc, default=None, old=True)
        self.options = sorted(self.by_name.values(), key=lambda option: option.name)

    def parse(self, argv: list[str]) -> Options:
        given = Options(self, argv)
        position = 0
        while position < len(argv):
            word = argv[position]
            position += 1
            if word == "--":
                break
            if not word.startswith("-") or word == "-":
                given.words.append(word)
                continue
            name, equals, inline = word.lstrip("-").partition("=")
            option = self._option(name)
            if option.value is None:
                if equals:
                    raise OptionError(f"Option {option.name} does not take an argument")
                given.add(option.name, None)
            elif equals:
                given.add(option.name, inline)
            elif option.value_is_optional:
                takes_next = position < len(argv) and _is_value(argv[position])
                given.add(option.name, argv[position] if takes_next else None)
                position += takes_next
            elif position < len(argv):
                given.add(option.name, argv[position])
                position += 1
            else:
                raise OptionError(f"Option {option.name} requires an argument")
        for old, new in self.aliases.items():
            if given.has(old) and not given.has(new):
                given.add(new, given.value(old))
        return given

    def _option(self, name: str) -> Option:
        option = self.by_name.get(name)
        if option is not None:
            return option
        starts = [candidate for candidate in self.options if candidate.name.startswith(name)] if name else []
        if len(starts) == 1:
            return starts[0]
        if len(starts) > 1:
            names = ", ".join(candidate.name for candidate in starts)
            raise OptionError(f"{name} is not a recognized option (it could be: {names})")
        raise OptionError(f"{name} is not a recognized option")

    def help(self) -> str:
        lines = [
            "Option".ljust(NAME_COLUMN_WIDTH) + "Description",
            "------".ljust(NAME_COLUMN_WIDTH) + "-----------",
        ]
        for option in self.options:
            if not option.old:
                lines += _option_lines(option)
        lines.append("")
        lines.append("Example:" if len(self.examples) == 1 else "Examples:")
        lines += [f"  {example}" for example in self.examples]
        return "\n".join(lines) + "\n"


def _is_value(word: str) -> bool:
    """And no option: -1 is a number."""
    return not word.startswith("-") or word[1:].isdecimal()


def _option_lines(option: Option) -> list[str]:
    name = f"--{option.name}"
    if option.value is not None:
        name += f" [{option.value}]" if option.value_is_optional else f" <{option.value}>"
    doc = option.doc if option.default in (None, "") else f"{option.doc} (default: {option.default})"
    described = wrap(doc, HELP_WIDTH - NAME_COLUMN_WIDTH)
    if len(name) >= NAME_COLUMN_WIDTH:
        described.insert(0, "")
    first, *rest = described
    return [name.ljust(NAME_COLUMN_WIDTH) + first, *(" " * NAME_COLUMN_WIDTH + line for line in rest)]


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters; line breaks stay. (textwrap would cost more time than the help itself.)"""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        indent = " " * (len(paragraph) - len(paragraph.lstrip()))
        line = indent
        for word in paragraph.split():
            if len(line) + len(word) > width and line.strip():
                lines.append(line.rstrip())
                line = indent
            line += word + " "
        lines.append(line.rstrip())
    return lines


def usage(message: str) -> NoReturn:
    raise UsageError(message)
