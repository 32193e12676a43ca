"""The same program on this machine and on a standalone cluster, whatever is installed where its executors run."""

from __future__ import annotations

import json
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.spark_cluster import SparkCluster
from tests.conftest import MakeTopic
from tests.spark.shop import ORDERS, TEST_TIMEOUT_S, Shop

pytestmark = pytest.mark.timeout(TEST_TIMEOUT_S)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster() as running:
        yield running


@pytest.fixture
def shop(broker: PenstockBroker, make_topic: MakeTopic, tmp_path: Path) -> Shop:
    return Shop(broker, make_topic, tmp_path)


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python of our version with nothing installed."""
    venv.create(tmp_path / "bare", with_pip=False)
    return tmp_path / "bare" / "bin" / "python"


@pytest.mark.usefixtures("spark")
def test_a_program_prints_the_same_with_a_local_spark_and_on_a_cluster(
    shop: Shop,
    cluster: SparkCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed, _ = shop.run_here(monkeypatch, capsys)
    _, written = json.loads(printed)
    assert written == [f"ORDER {n}" for n in range(ORDERS)]
    printed_on_cluster, place = shop.run(cluster.master)
    assert printed_on_cluster == printed
    assert place.prefix == Path(sys.prefix)


def test_executors_with_a_bare_python_run_on_what_the_driver_sends(
    shop: Shop, cluster: SparkCluster, bare_python: Path
) -> None:
    printed, place = shop.run(cluster.master, "ship", python=bare_python)
    _, written = json.loads(printed)
    assert written == [f"ORDER {n}" for n in range(ORDERS)]
    assert place.prefix == bare_python.parents[1]
    assert place.package.is_relative_to(cluster.work_directory)
    assert place.library.is_relative_to(cluster.work_directory)
    assert place.compiled_walks == 0, "numba compiled on the executor what the driver had sent compiled"


def test_executors_of_another_python_say_so_in_one_sentence(
    shop: Shop, cluster: SparkCluster, bare_python: Path, tmp_path: Path
) -> None:
    # As on two machines: the same name is one Python for the driver and another for executors.
    stranger = tmp_path / "python"
    lies = "import sys, sysconfig, runpy; sysconfig.get_config_vars()['SOABI'] = 'cpython-399-strange'; "
    daemon = "sys.argv = sys.argv[1:]; runpy.run_module('penstock.spark.internals.daemon', run_name='__main__', alter_sys=True)"
    stranger.write_text(
        "#!/bin/sh\n"
        f'case "$PWD" in {cluster.work_directory}/*) shift; exec {bare_python} -c "{lies}{daemon}" "$@";; esac\n'
        f'exec {bare_python} "$@"\n'
    )
    stranger.chmod(0o700)
    done = shop.attempt(cluster.master, "ship", python=stranger)
    assert done.returncode != 0
    assert "the libraries that the driver sends are for cpython-3" in done.stderr
    assert "is cpython-399-strange" in done.stderr
