"""Requests of an application to a Spark standalone cluster, and values that it keeps secret."""

from pathlib import Path

import pytest

from controlplane.compute.standalone import cluster_conf, master_command, worker_command
from dataplane.names import LANE_KINDS

HOME = Path("/spark")


@pytest.mark.parametrize("master", ["local", "local[16,1000]"])
def test_local_master_gets_no_further_settings(master: str):
    assert cluster_conf(master, "abc") == {}


def test_executors_on_a_cluster_follow_lanes_and_a_lane_is_retried_for_long():
    conf = cluster_conf("spark://host:7077", "abc")
    assert conf["spark.dynamicAllocation.enabled"] == "true"
    assert conf["spark.executor.cores"] == "1", "a removed lane frees its executor"
    assert int(conf["spark.task.maxFailures"]) >= 1_000
    assert conf["spark.executorEnv.PENSTOCK_INCARNATION"] == "abc", "the keeper finds leftover processes by it"


def test_spare_executors_are_kept_in_addition_to_those_of_one_lane_of_each_kind():
    least = "spark.dynamicAllocation.minExecutors"
    assert least not in cluster_conf("spark://host:7077", "abc")
    assert cluster_conf("spark://host:7077", "abc", spare=1)[least] == str(len(LANE_KINDS) + 1)
    assert cluster_conf("local[16,1000]", "abc", spare=1) == {}


def test_command_line_contains_no_secret(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_FERNET_KEYS", "canary")
    assert not any("canary" in value for value in cluster_conf("spark://host:7077", "abc").values())


def test_master_and_workers_start_from_the_installed_spark():
    master = master_command(HOME, host="h", port=7077, web_port=8080)
    worker = worker_command(HOME, "spark://h:7077", host="w", cores=4, memory_mb=2_048, work=Path("/work"))
    assert master[:2] == ["/spark/bin/spark-class", "org.apache.spark.deploy.master.Master"]
    assert worker[-1] == "spark://h:7077"
    assert worker[worker.index("--memory") + 1] == "2048m"
