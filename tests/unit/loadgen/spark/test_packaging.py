"""The archive sent to executors."""

import os
import subprocess
import sys
from pathlib import Path

from loadgen.spark import packaging
from loadgen.spark.packaging import needed_distributions, pack, packed_files
from loadgen.spark.session import SparkSettings, session_conf
from loadgen.spark.settings import EVERYWHERE, as_properties, cluster_settings


def test_the_archive_holds_the_packages_of_clients_but_not_spark() -> None:
    needed = set(needed_distributions())
    assert needed >= {"numpy", "pyarrow", "protobuf", "uvloop", "pydantic", "pydantic-core"}
    assert not needed & {"pyspark", "py4j", "pytest", "ruff", "floodgate"}


def test_the_archive_holds_our_packages_with_data_and_without_tests() -> None:
    files = packed_files()
    assert {"loadgen/__main__.py", "proto/PulsarApi_pb2.py", "loadgen/report/report.css"} <= set(
        files
    )
    assert not [name for name in files if "/tests/" in name or name.endswith(".pyc")]


def test_the_archive_is_reproducible_and_runs_by_its_own_python(tmp_path, monkeypatch) -> None:
    # Given one module instead of all
    (tmp_path / "module.py").write_text("print('packed')")
    monkeypatch.setattr(packaging, "packed_files", lambda: {"here.py": tmp_path / "module.py"})
    first, second = tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"
    pack(first)
    os.utime(tmp_path / "module.py", (1, 1))
    pack(second)
    assert first.read_bytes() == second.read_bytes()
    (tmp_path / "node").mkdir()
    subprocess.run(["tar", "xzf", first, "-C", tmp_path / "node"], check=True)
    ran = subprocess.run(
        [tmp_path / "node" / "bin" / "python", "-m", "here"],
        env={"PATH": "/usr/bin:/bin", "LOADGEN_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "packed\n"


def test_the_printed_cluster_settings_equal_the_settings_of_sessions(tmp_path: Path) -> None:
    conf = session_conf(SparkSettings("x", cores=2), tmp_path)
    lines = as_properties(cluster_settings("a.tar.gz")).splitlines()
    assert {each.key: each.value for each in EVERYWHERE}.items() <= conf.items()
    assert [line for line in lines[::2] if not line.startswith("# ")] == []
    assert "spark.archives a.tar.gz#environment" in lines
    assert "spark.speculation false" in lines
