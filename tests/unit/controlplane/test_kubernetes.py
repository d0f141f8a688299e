"""Cells on Kubernetes: requests to the cluster and settings of Spark, as far as testable without a cluster."""

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from msgspec import structs

from controlplane.compute import executor
from controlplane.compute.api_server import ApiServer
from controlplane.compute.factory import compute_at
from controlplane.compute.files import ComputeFiles
from controlplane.compute.installed import spark_home
from controlplane.compute.kubernetes import KubernetesCompute
from controlplane.compute.launch import SparkLauncher
from controlplane.compute.local import LocalCompute
from controlplane.compute.pods import PodContext, deployment, desired_in, pod_from, spark_conf
from controlplane.compute.port import ComputeError, DesiredApplication
from controlplane.compute.processes import INCARNATION_VARIABLE
from controlplane.compute.releases import WORKER_DAEMON, ReleaseStore
from controlplane.compute.standalone import cluster_conf
from localbox.settings import ROOT
from tests.support.kubernetes_api import KubernetesCluster, cluster

MASTER = "k8s://https://kubernetes.default.svc"
POD = PodContext("cell-a-xyz", "penstock", "10.0.0.7", "penstock:1.2.3")
ENV = {"POD_NAME": POD.name, "POD_NAMESPACE": POD.namespace, "POD_IP": POD.ip, "POD_IMAGE": POD.image}
DESIRED = DesiredApplication("a", 3, MASTER, "0123456789abcdef")
TEMPLATES = ROOT / "deploy" / "kubernetes" / "cells"
CELL = yaml.safe_load((TEMPLATES / "cell.yaml").read_text())
JARS = spark_home() / "jars"
SET_BY_SPARK = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:4040",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_EXECUTOR_POD_NAME": "cell-a-exec-7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    **{f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in range(11)},
}


@pytest.fixture
def there(tmp_path: Path) -> Iterator[KubernetesCluster]:
    with cluster(tmp_path) as made:
        yield made


def known_to_spark(class_name: str, jar: str = "spark-kubernetes") -> bytes:
    return zipfile.ZipFile(next(JARS.glob(f"{jar}_*.jar"))).read(f"org/apache/spark/{class_name}.class")


def constant(text: str) -> bytes:
    """Return a string as it is in a class file, with its length: the beginning of a longer one is another."""
    return len(text).to_bytes(2, "big") + text.encode()


def test_deployment_stores_its_desired_application_and_runs_the_image_of_the_caller():
    made = deployment(CELL, DESIRED, POD)
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert desired_in(made) == DESIRED
    assert container["image"] == POD.image
    assert {"name": "POD_IMAGE", "value": POD.image} in container["env"]
    assert made["metadata"]["name"] == "cell-a"


def test_cells_differ_by_a_label_that_selector_and_pod_share():
    made = deployment(CELL, DESIRED, POD)
    selector, pod = made["spec"]["selector"]["matchLabels"], made["spec"]["template"]["metadata"]["labels"]
    assert selector["penstock-cell"] == "a"
    assert selector.items() <= pod.items()


def test_new_epoch_or_release_is_a_new_pod_and_leaves_the_template_unchanged():
    before = yaml.safe_dump(CELL)
    pods = [
        yaml.safe_dump(deployment(CELL, desired, POD)["spec"]["template"])
        for desired in (
            DESIRED,
            DesiredApplication("a", 4, MASTER, DESIRED.release),
            DesiredApplication("a", 3, MASTER, "fedcba9876543210"),
        )
    ]
    assert len({*pods}) == 3
    assert yaml.safe_dump(CELL) == before


def test_pod_arguments_are_the_desired_application_of_its_keeper(tmp_path: Path):
    arguments = deployment(CELL, DESIRED, POD)["spec"]["template"]["spec"]["containers"][0]["args"]
    program = [sys.executable, "-m", "controlplane.compute.keeper", *arguments]
    env = {"PENSTOCK_VAR": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **ENV}
    with subprocess.Popen(program, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as kept:
        assert kept.stdout is not None
        tried = next(line for line in kept.stdout if "cannot be started" in line)
        kept.terminate()
    assert kept.returncode == 0
    assert f"release {DESIRED.release}" in tried, "that release does not exist here, so it ends with the attempt"
    assert ComputeFiles(tmp_path).desired("a") == DESIRED


@pytest.mark.parametrize("annotations", [{}, {"penstock-wish": "{"}, {"penstock-wish": '{"cell": 1}'}])
def test_deployment_with_an_unreadable_desired_application_counts_as_none(annotations: dict[str, str]):
    assert desired_in({"metadata": {"annotations": annotations}}) is None
    assert desired_in({"metadata": {}}) is None


def test_submit_of_an_unchanged_application_only_reads(there: KubernetesCluster):
    compute = KubernetesCompute(there.api, POD, TEMPLATES)
    compute.submit(DESIRED)
    there.calls.clear()
    compute.submit(DESIRED)
    assert there.calls == ["GET"]


def test_renewed_token_is_used_at_once(there: KubernetesCluster):
    compute = KubernetesCompute(there.api, POD, TEMPLATES)
    token = there.api.account / "token"
    good = token.read_text()
    token.write_text("an old one")
    with pytest.raises(ComputeError, match="401, Unauthorized"):
        compute.observe("a")
    token.write_text(good)
    assert compute.observe("a").desired is None


def test_refusal_reports_the_request_and_the_reason(there: KubernetesCluster):
    there.refuses = True
    with pytest.raises(ComputeError, match=r"GET /apis/apps/v1/.*cell-a: 403, deployments.apps is forbidden"):
        KubernetesCompute(there.api, POD, TEMPLATES).submit(DESIRED)


def test_server_with_an_untrusted_certificate_does_not_get_the_token(there: KubernetesCluster, tmp_path: Path):
    with cluster(_folder(tmp_path / "other")) as other:
        stranger = ApiServer(other.api.url, there.api.account)
        with pytest.raises(ComputeError, match=r"does not respond: .*CERTIFICATE_VERIFY_FAILED"):
            stranger.get("/apis")
        assert other.calls == []


def test_unreachable_server_is_a_compute_error(there: KubernetesCluster):
    with pytest.raises(ComputeError, match="does not respond"):
        ApiServer("https://127.0.0.1:1", there.api.account).get("/apis")


def test_master_selects_the_adapter(tmp_path: Path):
    assert isinstance(compute_at("local[16,1000]", tmp_path, {}), LocalCompute)
    chosen = compute_at(MASTER, tmp_path, ENV)
    assert isinstance(chosen, KubernetesCompute)
    assert (chosen.api.url, chosen.pod) == ("https://kubernetes.default.svc", POD)
    with pytest.raises(ValueError, match="needs POD_NAME"):
        compute_at(MASTER, tmp_path, {})


def test_incomplete_pod_environment_is_an_error():
    assert pod_from({}) is None
    with pytest.raises(KeyError):
        pod_from({"POD_NAME": "x"})


def test_spark_knows_every_setting_that_it_gets():
    known = known_to_spark("deploy/k8s/Config$") + known_to_spark("internal/config/package$", "spark-core")
    told = cluster_conf(MASTER, "0" * 32, spare=1) | spark_conf("a", "0" * 32, POD)
    told.pop(f"spark.executorEnv.{INCARNATION_VARIABLE}")
    assert len(told) > 20
    assert [name for name in told if constant(name.removesuffix("penstock-cell")) not in known] == []


def test_executors_belong_to_the_driver_pod_and_find_it():
    conf = spark_conf("a", "0123456789" * 3, POD)
    assert conf["spark.kubernetes.driver.pod.name"] == POD.name
    assert conf["spark.driver.host"] == POD.ip
    assert conf["spark.kubernetes.executor.podNamePrefix"] == "cell-a-01234567"


def test_executor_names_of_the_longest_cell_name_fit_the_limit_of_spark():
    # Spark refuses a prefix of more than 47 characters.
    assert len(spark_conf("a" * 20, "0" * 32, POD)["spark.kubernetes.executor.podNamePrefix"]) <= 47


def test_command_names_master_and_executors_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_FERNET_KEYS", "canary")
    desired = DesiredApplication("a", 3, MASTER, ReleaseStore(tmp_path).pack(ROOT))
    command = SparkLauncher(tmp_path, pod=POD).command(desired, "0" * 32)
    assert command[command.index("--master") + 1] == MASTER
    assert not any(WORKER_DAEMON in word for word in command), "not tested in a cluster"
    assert f"spark.kubernetes.container.image={POD.image}" in command
    assert "spark.dynamicAllocation.enabled=true" in command, "executors follow lanes, as on any cluster"
    assert command[-6:] == ["--cell", "a", "--epoch", "3", "--incarnation", "0" * 32]
    assert not any("canary" in word for word in command)


def test_spark_redacts_the_options_by_which_kafka_clients_sign_in(tmp_path: Path):
    desired = DesiredApplication("a", 3, "local[16,1000]", ReleaseStore(tmp_path).pack(ROOT))
    command = SparkLauncher(tmp_path).command(desired, "0" * 32)
    (pattern,) = [word.partition("=")[2] for word in command if word.startswith("spark.redaction.regex=")]
    for name in ("kafka.sasl.jaas.config", "kafka.ssl.keystore.key", "spark.authenticate.secret", "PASSWORD"):
        assert re.search(pattern, name)
    assert not re.search(pattern, "kafka.bootstrap.servers")


def test_workers_are_forked_from_the_daemon_of_their_release(tmp_path: Path):
    """An executor of a cluster finds its code in its working folder; an earlier release has no such daemon."""
    releases, setting = ReleaseStore(tmp_path), f"spark.python.daemon.module={WORKER_DAEMON}"
    release = releases.pack(ROOT)
    launcher, local = SparkLauncher(tmp_path), DesiredApplication("a", 3, "local[16,1000]", release)
    assert setting in launcher.command(local, "0" * 32)
    assert not any("executorEnv.PYTHONPATH" in word for word in launcher.command(local, "0" * 32))
    on_cluster = launcher.command(structs.replace(local, master="spark://127.0.0.1:7077"), "0" * 32)
    assert {setting, f"spark.executorEnv.PYTHONPATH=dataplane-{release}.zip"} <= set(on_cluster)
    earlier = tmp_path / "earlier"
    shutil.copytree(ROOT / "dataplane", earlier / "dataplane", ignore=shutil.ignore_patterns("worker_daemon.py"))
    assert setting not in launcher.command(structs.replace(local, release=releases.pack(earlier)), "0" * 32)


def test_local_master_gets_no_pod_settings_and_a_kubernetes_master_needs_a_pod(tmp_path: Path):
    release = ReleaseStore(tmp_path).pack(ROOT)
    local = SparkLauncher(tmp_path).command(DesiredApplication("a", 3, "local[16,1000]", release), "0" * 32)
    assert not any("kubernetes" in word or "dynamicAllocation" in word for word in local)
    with pytest.raises(OSError, match="only for drivers that run in its pods"):
        SparkLauncher(tmp_path).command(DesiredApplication("a", 3, MASTER, release), "0" * 32)


def test_spark_executor_knows_every_option_that_it_gets():
    backend = known_to_spark("scheduler/cluster/k8s/KubernetesExecutorBackend$")
    assert [option for option in executor.OPTIONS if constant(option) not in backend] == []
    assert executor.MAIN.endswith(".KubernetesExecutorBackend")


def test_spark_sets_every_variable_that_the_executor_reads():
    known = known_to_spark("deploy/k8s/Constants$")
    read = [*executor.OPTIONS.values(), executor.JAVA_OPTION, "SPARK_EXECUTOR_MEMORY", "SPARK_CLASSPATH"]
    assert [name for name in read if constant(name) not in known] == []


def test_executor_is_started_as_spark_requires_with_its_java_options_in_order(tmp_path: Path):
    command = executor.command(SET_BY_SPARK, tmp_path)
    assert command[0] == "java"
    assert command[1:12] == [f"-Dn={number}" for number in range(11)]
    assert command[12:14] == ["-Xms512m", "-Xmx512m"]
    assert command[command.index("-cp") + 1] == f"{tmp_path}/jars/*"
    assert command[command.index("--podName") + 1] == "cell-a-exec-7"


@pytest.mark.parametrize("missing", [*executor.OPTIONS.values(), "SPARK_EXECUTOR_MEMORY"])
def test_executor_without_a_spark_variable_names_it(missing: str, tmp_path: Path):
    with pytest.raises(KeyError, match=missing):
        executor.command({name: value for name, value in SET_BY_SPARK.items() if name != missing}, tmp_path)


def test_executor_sees_no_data_plane_but_the_one_that_spark_ships(tmp_path: Path):
    env = executor.environment({"PYTHONPATH": f"{ROOT}:/elsewhere", "PENSTOCK_KAFKA": "k:1"}, tmp_path)
    assert env["PYTHONPATH"] == "/elsewhere"
    assert env["PENSTOCK_KAFKA"] == "k:1"
    assert env["PYSPARK_PYTHON"] == sys.executable


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
