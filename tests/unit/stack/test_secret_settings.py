"""Passwords among a plain stack's settings, which other users of the machine must not read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from penstock.cli import broker
from penstock.client.errors import UserError
from penstock.client.property_files import read_properties
from penstock.stack import console
from penstock.stack.brokers import SERVICE
from tests.unit.stack.stacks import asked, made

PASSWORD = 's3\\cret "word"'
SETTINGS = (f"ssl.keystore.password={PASSWORD}", "num.partitions=6")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_password_is_on_no_command_line(tmp_path: Path) -> None:
    stack = made(tmp_path / "box", asked(settings=SETTINGS))
    command = SERVICE.command(stack, stack.member("broker-1"))
    assert not any("s3" in word for word in command)
    assert "num.partitions=6" in command
    file = Path(command[command.index("--config") + 1])
    assert mode(file) == 0o600
    assert read_properties(str(file)) == {"ssl.keystore.password": PASSWORD}
    assert broker.read_properties(str(file)) == {"ssl.keystore.password": PASSWORD}


def test_the_file_goes_with_the_password(tmp_path: Path) -> None:
    stack = made(tmp_path / "box", asked(settings=SETTINGS))
    SERVICE.command(stack, stack.member("broker-1"))
    stack = made(tmp_path / "box", asked(settings=("num.partitions=6",)))
    assert "--config" not in SERVICE.command(stack, stack.member("broker-1"))
    assert [path.name for path in stack.directory.iterdir()] == ["box.json"]


def test_what_belongs_to_the_stack_is_for_its_owner_only(tmp_path: Path) -> None:
    stack = made(tmp_path / "box", asked(settings=SETTINGS))
    (stack.directory / "box.json").chmod(0o644)  # as older versions left it
    made(tmp_path / "box", asked())
    assert mode(stack.directory / "box.json") == 0o600


def test_a_password_on_ones_own_command_line_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    args = broker.parser().parse_args(["--set", f"ssl.key.password={PASSWORD}", "--set", "num.partitions=6"])
    broker.read_sets(args)
    (record,) = caplog.records
    assert record.message.startswith(
        "--set ssl.key.password: everybody on this machine can read the command line"
    )
    assert "--config" in record.message
    assert "s3" not in record.message


def test_settings_beside_a_console_file_belong_into_it(tmp_path: Path) -> None:
    stack = made(tmp_path / "box", asked())
    settings = ("config=console.yaml", f"ssl.keystore.password={PASSWORD}")
    assert console.SERVICE.check_settings is not None
    console.SERVICE.check_settings(stack._replace(settings={console.NAME: settings[:1]}))
    with pytest.raises(UserError, match=r"write ssl\.keystore\.password under web: in console\.yaml"):
        console.SERVICE.check_settings(stack._replace(settings={console.NAME: settings}))
