"""The script behind `make setup PYTHON=…`, with programs in place of a Python and of Debian's apt-get."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "python-setup"
# Python 3.14, whose venv module comes with the file `installed`. Asked for an environment, it says so and fails.
PYTHON = """#!/bin/sh
case "$*" in
    "-c pass") exit 0 ;;
    *version_info*3,\\ 11*) exit 0 ;;
    *ensurepip*) [ -e "$FOLDER/installed" ] ;;
    *-venv*) echo python3.14-venv ;;
    *) echo "asked for $*"; exit 3 ;;
esac
"""
OLD_PYTHON = '#!/bin/sh\ncase "$*" in *version_info*) exit 1 ;; esac\n'
# Asked what it is, it says the text that is put in; it makes environments whose Python says the same.
KNOWN_PYTHON = """#!/bin/sh
case "$*" in
    *base_prefix*) echo "{about}" ;;
    *-m\\ venv*)
        echo "made: $*"
        for folder; do :; done
        mkdir -p "$folder/bin"
        cp "$0" "$folder/bin/python"
        ;;
esac
"""
APT_GET = '#!/bin/sh\necho "$@" >>"$FOLDER/asked"\n[ "$1" != install ] || touch "$FOLDER/installed"\n'
BROKEN_APT_GET = "#!/bin/sh\nexit 100\n"


def set_up(folder: Path, *words: str, python: str = PYTHON, apt_get: str) -> subprocess.CompletedProcess[str]:
    programs = {"python": python, "apt-get": apt_get, "id": "#!/bin/sh\necho 0\n"}
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return subprocess.run(
        [SCRIPT, folder / "python", folder / "environment", *words],
        env={"PATH": f"{folder}:/usr/bin:/bin", "FOLDER": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_venv_module_of_that_very_python_is_installed(tmp_path: Path) -> None:
    done = set_up(tmp_path, apt_get=APT_GET)
    assert "python3.14-venv" in (tmp_path / "asked").read_text()
    assert f"asked for -m venv {tmp_path / 'environment'}" in done.stdout
    assert done.returncode == 3


def test_a_venv_module_that_cannot_be_had_is_named_in_one_line(tmp_path: Path) -> None:
    done = set_up(tmp_path, apt_get=BROKEN_APT_GET)
    assert done.stderr == (
        f"penstock: '{tmp_path / 'python'}' has no venv module. Install it first: sudo apt-get install python3.14-venv\n"
    )
    assert done.returncode == 1


def test_an_older_python_is_refused_in_one_line(tmp_path: Path) -> None:
    done = set_up(tmp_path, python=OLD_PYTHON, apt_get=APT_GET)
    assert done.stderr.startswith(
        f"penstock: Python 3.11 or later is needed; '{tmp_path / 'python'}' is older."
    )
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


def test_a_python_that_cannot_be_run_is_not_called_old(tmp_path: Path) -> None:
    done = set_up(tmp_path, python="#!/nowhere/python\n", apt_get=APT_GET)
    assert done.stderr.startswith(f"penstock: cannot run '{tmp_path / 'python'}': is it installed? ")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


def known_python(about: str) -> str:
    return KNOWN_PYTHON.format(about=about)


def environment_of(folder: Path, about: str) -> Path:
    python = folder / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(known_python(about))
    python.chmod(0o755)
    return python


def test_an_environment_of_another_python_is_made_anew(tmp_path: Path) -> None:
    environment_of(tmp_path, "3.11 /usr")
    done = set_up(tmp_path, python=known_python("3.13 /opt"), apt_get=APT_GET)
    environment = tmp_path / "environment"
    assert f"penstock: {environment} is of 3.11; making it anew with" in done.stdout
    assert f"made: -m venv --clear {environment}" in done.stdout
    assert done.returncode == 0, done.stderr
    again = set_up(tmp_path, python=known_python("3.13 /opt"), apt_get=APT_GET)
    assert "--clear" not in again.stdout


def test_an_environment_whose_python_is_gone_is_made_anew(tmp_path: Path) -> None:
    environment_of(tmp_path, "").unlink()
    (tmp_path / "environment" / "bin" / "python").symlink_to("/nowhere/python3.11")
    done = set_up(tmp_path, python=known_python("3.13 /opt"), apt_get=APT_GET)
    assert "is of a Python that no longer runs; making it anew" in done.stdout
    assert "made: -m venv --clear" in done.stdout


def test_an_environment_keeps_its_python_where_none_is_named(tmp_path: Path) -> None:
    environment_of(tmp_path, "3.13 /opt")
    done = set_up(tmp_path, "keep", python=known_python("3.11 /usr"), apt_get=APT_GET)
    assert "made: " not in done.stdout
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("named", "is_made"), [("3.13 /opt", True), ("3.11 /usr", False), (None, False)])
def test_make_sees_that_another_python_is_named(tmp_path: Path, named: str | None, is_made: bool) -> None:
    environment_of(tmp_path, "3.11 /usr")
    stamp = tmp_path / "environment" / ".installed"
    stamp.touch()  # younger than what it is made of
    words = [f"VENV={tmp_path / 'environment'}"]
    if named is not None:
        python = tmp_path / "python"
        python.write_text(known_python(named))
        python.chmod(0o755)
        words.append(f"PYTHON={python}")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "MAKEFLAGS")}
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "setup", *words],
        cwd=SCRIPT.parents[1],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("scripts/python-setup" in done.stdout) is is_made
