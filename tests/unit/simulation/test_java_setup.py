import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "java-setup"


def test_a_wrong_version_is_refused_with_one_line() -> None:
    done = subprocess.run([SCRIPT, "4.x"], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "java-setup: '4.x' is not a version of Apache Kafka (for example 4.3.1)"
    ]


# All that the script calls when there is nothing but a Java to install.
COMMANDS = ("cat", "chmod", "dirname", "flock", "head", "mkdir", "readlink", "rm", "sed")
FAKE_JAVA = '#!/bin/sh\necho "openjdk version \\"17.0.1\\"" >&2\n'
FAKE_APT_GET = """#!/bin/sh
echo "$@" >>{calls}
[ "$1" = update ] && exit 0
cat >{java} <<'END'
{fake_java}END
chmod +x {java}
"""


def test_a_runtime_alone_is_installed_without_maven_and_only_once(tmp_path: Path) -> None:
    bin_dir, calls = tmp_path / "bin", tmp_path / "calls"
    bin_dir.mkdir()
    for name in COMMANDS:
        found = shutil.which(name)
        assert found is not None
        (bin_dir / name).symlink_to(found)
    scripts = {
        "apt-get": FAKE_APT_GET.format(calls=calls, java=bin_dir / "java", fake_java=FAKE_JAVA),
        "id": "#!/bin/sh\necho 0\n",
    }
    for name, text in scripts.items():
        (bin_dir / name).write_text(text)
        (bin_dir / name).chmod(0o755)
    script = tmp_path / "scripts" / "java-setup"
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)
    for _ in range(2):
        done = subprocess.run(
            [script, "--runtime-only"],
            env={"PATH": str(bin_dir)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert calls.read_text().splitlines() == [
        "update",
        "install -y --no-install-recommends default-jre-headless",
    ]
