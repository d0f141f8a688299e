"""deploy/helm/penstock, rendered by Helm, has the objects of deploy/kubernetes, rendered by kustomize."""

import json
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from controlplane.compute.pods import PodContext, deployment
from controlplane.compute.port import DesiredApplication
from localbox.settings import ROOT
from tests.support.doc_blocks import documented_all
from tests.support.go_tools import go_tool

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]  # the first one builds the programs

HELM = "v4.3.2"
KUSTOMIZE = "v5.8.1"
CHART = ROOT / "deploy" / "helm" / "penstock"
VERSIONS = ("1.30.0", kubernetes_validate.latest_version())
Manifest = dict[str, Any]
Objects = dict[tuple[str, str], Manifest]
S3 = {"lake": {"store": "s3", "url": "s3a://events/lake", "credentialsSecret": "lake-s3"}}
INGRESS = {"ingress": {"enabled": True, "className": "nginx", "annotations": {"a/b": "c"}}}


def run(tool: str, version: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(go_tool(tool, version)), *words], capture_output=True, text=True, check=False)


def helm(folder: Path, command: list[str], values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    return run("helm", HELM, *command, str(CHART), "--namespace", "penstock", "--values", str(file))


def rendered(folder: Path, values: dict[str, Any] | None = None) -> Objects:
    """Return the chart's objects by kind and name."""
    done = helm(folder, ["template", "penstock"], values or {})
    assert done.returncode == 0, done.stderr
    return by_name(done.stdout)


def by_name(text: str) -> Objects:
    manifests = [manifest for manifest in yaml.safe_load_all(text) if manifest]
    found = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in manifests}
    assert len(found) == len(manifests)
    return found


def pod_template(manifest: Manifest) -> Manifest:
    """Return the template of the object's pods, {} if it has none."""
    found: Manifest = manifest.get("spec", {}).get("template", {})
    return found


def comparable(manifest: Manifest) -> Manifest:
    """Return the object without what Helm and kustomize must write differently; order of lists does not matter."""
    changed = deepcopy(manifest)
    changed["metadata"].pop("namespace", None)
    changed["metadata"].pop("annotations", None)
    pod_template(changed).get("metadata", {}).pop("annotations", None)
    if changed["kind"] == "Job":
        changed["metadata"]["name"] = "setup"
    if changed["metadata"]["name"] == "penstock-cells":
        changed["data"] = {name: unordered(yaml.safe_load(text)) for name, text in changed["data"].items()}
    plain: Manifest = unordered(changed)
    return plain


def unordered(part: Any) -> Any:
    """Return the part with its lists of variables and mounts as mappings: their order has no meaning."""
    match part:
        case dict():
            return {key: unordered(value) for key, value in part.items()}
        case [{"mountPath": _}, *_]:
            return {one["mountPath"]: one for one in part}
        case [{"name": _, "value": _} | {"name": _, "valueFrom": _}, *_]:
            return {one["name"]: one for one in part}
        case list():
            return [unordered(one) for one in part]
    return part


def cells(objects: Objects) -> dict[str, Manifest]:
    """Return the templates of a cell and of its executors."""
    data = objects["ConfigMap", "penstock-cells"]["data"]
    return {name.removesuffix(".yaml"): yaml.safe_load(text) for name, text in data.items()}


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def test_lint_finds_nothing(tmp_path: Path):
    done = helm(tmp_path, ["lint", "--strict"], {})
    assert done.returncode == 0, done.stdout + done.stderr


def test_default_values_render_the_objects_of_the_manifests(tmp_path: Path):
    done = run("kustomize", KUSTOMIZE, "build", str(ROOT / "deploy" / "kubernetes"))
    assert done.returncode == 0, done.stderr
    wanted = by_name(done.stdout)
    del wanted["Namespace", "penstock"]  # of `helm install --create-namespace`, or of the operator
    ours = {(one["kind"], one["metadata"]["name"]): one for one in map(comparable, rendered(tmp_path).values())}
    assert {*ours} == {*wanted}
    for key, manifest in wanted.items():
        assert ours[key] == comparable(manifest), key


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [{}, S3, INGRESS], ids=["default", "s3", "ingress"])
def test_objects_are_valid_by_their_strict_schemas(tmp_path: Path, values: dict[str, Any], version: str):
    objects = rendered(tmp_path, values)
    desired = DesiredApplication("a", 1, "k8s://https://kubernetes.default.svc", "0123456789abcdef")
    worker = PodContext("worker-1", "penstock", "10.0.0.1", "penstock:0.1.0")
    templates = cells(objects)
    for manifest in (*objects.values(), deployment(templates["cell"], desired, worker), templates["executor"]):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_lake_in_s3_is_the_only_store_and_only_cells_get_its_credentials(tmp_path: Path):
    objects = rendered(tmp_path, S3)
    assert objects["ConfigMap", "penstock"]["data"]["PENSTOCK_LAKES"] == S3["lake"]["url"]
    templates = cells(objects)
    for pod in (templates["cell"]["spec"]["template"]["spec"], templates["executor"]["spec"]):
        (container,) = pod["containers"]
        paths = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert "/var/penstock/lake" not in paths
        assert "/var/penstock/data/checkpoints" in paths, "they stay on the shared volume"
        assert {"secretRef": {"name": "lake-s3"}} in container["envFrom"]
    assert "lake-s3" not in yaml.safe_dump_all([one for key, one in objects.items() if key[1] != "penstock-cells"])


def test_changed_variable_replaces_every_pod_that_reads_it_and_the_setup_job(tmp_path: Path):
    before, after = rendered(tmp_path), rendered(tmp_path, {"config": {"PENSTOCK_OPERATOR_MAIL": "ops@example.com"}})
    for key, manifest in before.items():
        if pod_template(manifest) and manifest["kind"] != "Job":
            assert pod_template(manifest) != pod_template(after[key]), key
            assert {**pod_template(manifest), "metadata": 0} == {**pod_template(after[key]), "metadata": 0}
    assert len({key for key in (*before, *after) if key[0] == "Job"}) == 2
    again = rendered(tmp_path)
    assert again == before, "the same values change nothing"


def test_image_and_pull_secrets_reach_every_pod(tmp_path: Path):
    image = {"repository": "registry.example.com/penstock", "tag": "0.2.0", "pullSecrets": [{"name": "registry"}]}
    objects = rendered(tmp_path, {"image": image})
    pods = [pod_template(manifest)["spec"] for manifest in objects.values() if pod_template(manifest)]
    used = {container["image"] for pod in pods for container in containers(pod)}
    assert used == {"registry.example.com/penstock:0.2.0"}
    templates = cells(objects)
    pods += [templates["cell"]["spec"]["template"]["spec"], templates["executor"]["spec"]]
    assert all(pod["imagePullSecrets"] == image["pullSecrets"] for pod in pods)
    (worker,) = pod_template(objects["Deployment", "worker"])["spec"]["containers"]
    assert {"name": "POD_IMAGE", "value": "registry.example.com/penstock:0.2.0"} in worker["env"]


def test_ingress_sends_each_host_and_the_path_of_the_echo_to_an_existing_service(tmp_path: Path):
    objects = rendered(tmp_path, INGRESS)
    ingress = objects["Ingress", "penstock"]
    found = {
        (rule["host"], path["path"]): path["backend"]["service"]["name"]
        for rule in ingress["spec"]["rules"]
        for path in rule["http"]["paths"]
    }
    assert found == {
        ("penstock.example.com", "/echo/"): "echo",
        ("penstock.example.com", "/"): "web",
        ("in.penstock.example.com", "/"): "ingest",
        ("tables.penstock.example.com", "/"): "table-queries",
    }
    assert all(("Service", name) in objects for name in found.values())
    assert {*ingress["spec"]["tls"][0]["hosts"]} == {host for host, _ in found}
    assert ("Ingress", "penstock") not in rendered(tmp_path)


def test_values_of_the_guide_are_accepted(tmp_path: Path):
    guide = [yaml.safe_load(text) for text in documented_all("kubernetes.md", "yaml")]
    merged = {key: value for values in guide for key, value in values.items()}
    objects = rendered(tmp_path, merged)
    assert ("Ingress", "penstock") in objects
    assert objects["ConfigMap", "penstock"]["data"]["PENSTOCK_LAKES"] == "s3a://events/lake"


def test_existing_claim_is_used_instead_of_a_new_one(tmp_path: Path):
    objects = rendered(tmp_path, {"shared": {"existingClaim": "ours"}})
    assert [key for key in objects if key[0] == "PersistentVolumeClaim"] == []
    volumes = pod_template(objects["Deployment", "worker"])["spec"]["volumes"]
    assert {"name": "shared", "persistentVolumeClaim": {"claimName": "ours"}} in volumes


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"config": {"PENSTOCK_INGEST_URI": "https://in.example.com"}}, "PENSTOCK_INGEST_URI"),
        ({"config": {"PENSTOCK_SECRET_KEY": "x"}}, "PENSTOCK_SECRET_KEY"),
        ({"config": {"PENSTOCK_PARTITIONS": 12}}, "PENSTOCK_PARTITIONS"),
        ({"lake": {"store": "s3"}}, "lake"),
        ({"lake": {"url": "s3a://events/lake"}}, "lake"),
        ({"ingest": {"replicas": 3}}, "ingest"),
    ],
)
def test_wrong_values_are_refused_by_name(tmp_path: Path, values: dict[str, Any], named: str):
    done = helm(tmp_path, ["template", "penstock"], values)
    assert done.returncode != 0
    assert named in done.stderr
