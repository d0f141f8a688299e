"""Keeper's launcher with the real spark-submit: the application runs, and its end leaves nothing behind."""

import shutil
import signal
import sys
from pathlib import Path

from controlplane.compute.cell_supervisor import CellSupervisor
from controlplane.compute.files import ComputeFiles
from controlplane.compute.launch import SparkLauncher
from controlplane.compute.port import DesiredApplication
from controlplane.compute.processes import members, signal_all
from controlplane.compute.releases import ReleaseStore
from tests.support.patience import step_until

ROOT = Path(__file__).parents[3]
APPLICATION = """
import argparse, sys, threading, time
from pathlib import Path
import dataplane.names
from pyspark.sql import SparkSession

named = argparse.ArgumentParser()
for name in ("--cell", "--epoch", "--incarnation"):
    named.add_argument(name)
named = named.parse_args()
spark = SparkSession.builder.getOrCreate()
imported_by_driver = dataplane.names.__file__

def lane(_rows):
    import dataplane.names, time
    words = (sys.executable, imported_by_driver, dataplane.names.__file__)
    Path({mark!r} + named.incarnation).write_text("\\n".join(words))
    time.sleep(300)

threading.Thread(target=lambda: spark.sparkContext.parallelize([0], 1).foreachPartition(lane), daemon=True).start()
time.sleep(300)
"""


def test_spark_submit_runs_the_release_and_a_killed_jvm_leaves_no_orphan(tmp_path: Path):
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "dataplane", checkout / "dataplane")
    program = checkout / "dataplane" / "jobs" / "cell.py"
    program.write_text(APPLICATION.replace("{mark!r}", repr(f"{tmp_path}/mark-")))
    release = ReleaseStore(tmp_path).pack(checkout)
    shutil.rmtree(checkout)
    launcher = SparkLauncher(tmp_path)
    kept = CellSupervisor("c1", ComputeFiles(tmp_path), launcher, lambda *_: None, lambda: 0.5)
    desired = DesiredApplication("c1", 1, "local[2,10]", release)
    kept.step(desired, 0.0)
    assert kept.running is not None
    incarnation = kept.running.incarnation
    try:
        mark = tmp_path / f"mark-{incarnation}"
        step_until(lambda: mark.exists() and mark.read_text(), limit_s=90, every_s=0.1)
        interpreter, *modules = mark.read_text().splitlines()
        assert interpreter == sys.executable
        assert len(modules) == 2
        assert all(f"{release}.zip/" in module for module in modules), "driver and lane run the release"
        jvm = next(process for process in members(incarnation) if process.pid == kept.running.pid)
        assert "java" in jvm.name()
        jvm.kill()
        step_until(lambda: kept.running is None, lambda: kept.step(desired, 10.0), 90, every_s=0.1)
        assert members(incarnation) == []
    finally:
        signal_all(members(incarnation), signal.SIGKILL)
