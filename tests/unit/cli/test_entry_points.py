"""What `pip install` puts on the PATH is what `bin/` has in a checkout."""

import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_every_tool_of_a_checkout_is_installed_too() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts.pop("penstock") == "penstock.cli.main:main"
    assert scripts.pop("ksql") == "penstock.cli.main:ksql"
    assert (ROOT / "bin" / "ksql.sh").samefile(ROOT / "bin" / "ksql")
    launchers = {path.name for path in (ROOT / "bin").glob("*-*") if path.suffix != ".sh"}
    assert scripts.keys() == launchers
    for name, target in scripts.items():
        module, _, function = target.partition(":")
        command = getattr(import_module(module), function)
        assert import_module(f"penstock.cli.kafka.{command.args[0]}").TABLE.tool == name
