import pytest

from simulation.apache.java import JarsMissing, libs_directory


def test_missing_jars_are_one_line_that_says_what_to_run() -> None:
    with pytest.raises(JarsMissing, match=r"run scripts/java-setup 0\.0\.0$"):
        libs_directory("0.0.0")
