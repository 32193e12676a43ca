"""penstock completion: the script that a shell reads."""

from typing import Any

import click
from click.shell_completion import get_completion_class

HOW = {
    "bash": 'eval "$(penstock completion bash)"',
    "zsh": 'eval "$(penstock completion zsh)"',
    "fish": "penstock completion fish | source",
}


@click.command()
@click.argument("shell", type=click.Choice(list(HOW)))
def completion(shell: str) -> None:
    """Print the completion script for a shell. Topic names are completed from the cluster.

    \b
    Example, for ~/.bashrc, ~/.zshrc or config.fish:
      eval "$(penstock completion bash)"
      eval "$(penstock completion zsh)"
      penstock completion fish | source
    """
    from penstock.cli.verbs.app import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(_source(kind(cli, {}, "penstock", "_PENSTOCK_COMPLETE")))


def _source(generator: Any) -> str:
    # BashComplete.source() starts a bash to look at its version; the script itself needs none of that.
    return str(generator.source_template % generator.source_vars())
