"""The script behind `make setup PYTHON=…`, with programs in place of a Python and of Debian's apt-get."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "python-setup"
# Python 3.14, whose venv module comes with the file `installed`. Asked for an environment, it says so and fails.
PYTHON = """#!/bin/sh
case "$*" in
    *version_info*3,\\ 11*) exit 0 ;;
    *ensurepip*) [ -e "$FOLDER/installed" ] ;;
    *-venv*) echo python3.14-venv ;;
    *) echo "asked for $*"; exit 3 ;;
esac
"""
OLD_PYTHON = "#!/bin/sh\nexit 1\n"
APT_GET = '#!/bin/sh\necho "$@" >>"$FOLDER/asked"\n[ "$1" != install ] || touch "$FOLDER/installed"\n'
BROKEN_APT_GET = "#!/bin/sh\nexit 100\n"


def set_up(folder: Path, *, python: str = PYTHON, apt_get: str) -> subprocess.CompletedProcess[str]:
    programs = {"python": python, "apt-get": apt_get, "id": "#!/bin/sh\necho 0\n"}
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return subprocess.run(
        [SCRIPT, folder / "python", folder / "environment"],
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
    assert done.stderr.startswith("penstock: Python 3.11 or later is needed")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1
