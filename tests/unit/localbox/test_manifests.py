"""deploy/kubernetes matches the schemas, the programs that the box starts and the variables that the settings read.

These tests need no cluster: schemas are checked strictly, and the tests below check what no schema can express.
"""

import re
from itertools import chain
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from controlplane.compute import cell_supervisor
from controlplane.compute.pods import TEMPLATES, PodContext, deployment
from controlplane.compute.port import DesiredApplication
from dataplane.ingest.__main__ import DRAIN_S
from localbox.catalogue import SERVICES
from localbox.settings import ROOT
from tests.support.box_programs import box_programs, plain

FOLDER = ROOT / "deploy" / "kubernetes"
GUIDE = (ROOT / "docs" / "kubernetes.md").read_text()
VERSIONS = ("1.30.0", kubernetes_validate.latest_version())
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
CELL = deployment(
    yaml.safe_load((FOLDER / "cells" / "cell.yaml").read_text()),
    DesiredApplication("a", 1, "k8s://https://kubernetes.default.svc", "0123456789abcdef"),
    PodContext("worker-1", "penstock", "10.0.0.1", "penstock:0.1.0"),
)
EXECUTOR = yaml.safe_load((FOLDER / "cells" / "executor.yaml").read_text())
APPLIED: list[dict[str, Any]] = [
    document for name in KUSTOMIZATION["resources"] for document in yaml.safe_load_all((FOLDER / name).read_text())
]
ALL = [*APPLIED, CELL, EXECUTOR]
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
COMPOSE: dict[str, str] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["x-env"]


def titled(manifest: dict[str, Any]) -> str:
    return f"{manifest['kind']} {manifest['metadata'].get('name', '')}"


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the pod's specification, {} if it has none."""
    inner: dict[str, Any] = manifest.get("spec", {})
    return inner if manifest["kind"] == "Pod" else inner.get("template", {}).get("spec", {})


def labels_of(manifest: dict[str, Any]) -> dict[str, str]:
    holder = manifest if manifest["kind"] == "Pod" else manifest["spec"]["template"]
    found: dict[str, str] = holder["metadata"]["labels"]
    return found


def containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod_of(manifest).get("initContainers", []), *pod_of(manifest).get("containers", [])]


def one(kind: str, name: str) -> dict[str, Any]:
    (found,) = [m for m in APPLIED if m["kind"] == kind and m["metadata"]["name"] == name]
    return found


WITH_PODS = [pytest.param(m, id=titled(m)) for m in ALL if pod_of(m)]
CONFIG: dict[str, str] = one("ConfigMap", "penstock")["data"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", [pytest.param(m, id=titled(m)) for m in ALL if m is not EXECUTOR])
def test_each_manifest_is_valid_by_its_strict_schema(manifest: dict[str, Any], version: str):
    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_executor_template_is_a_valid_pod_with_one_container_named_executor(version: str):
    kubernetes_validate.validate(EXECUTOR, version, strict=True)
    assert [container["name"] for container in containers(EXECUTOR)] == ["executor"]


def test_misspelt_field_is_found_by_the_strict_schema():
    wrong = yaml.safe_load((FOLDER / "web.yaml").read_text().split("---")[2].replace("preStop", "beforeStop"))
    with pytest.raises(kubernetes_validate.ValidationError, match="beforeStop"):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_every_manifest_file_is_listed_in_the_kustomization():
    named = {*KUSTOMIZATION["resources"], *KUSTOMIZATION["configMapGenerator"][0]["files"], "kustomization.yaml"}
    assert {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yaml")} == named


def test_every_program_of_the_box_is_deployed_with_its_command(tmp_path: Path):
    commands = [plain(container["command"]) for manifest in ALL for container in containers(manifest)]
    ours = {p.name: plain(p.command) for p in box_programs(tmp_path) if p.command and p.name not in SERVICES}
    assert len(ours) == 11
    assert [name for name, command in ours.items() if command not in commands] == []


def test_variables_equal_those_of_compose_and_secret_ones_are_in_no_file():
    secret = re.findall(r"--from-literal=([A-Z_]+)=", GUIDE)
    assert {*CONFIG} | {*secret} == {*COMPOSE}
    assert not {*CONFIG} & {*secret}
    assert {name for name in COMPOSE if re.search("KEY|DATABASE_URL|REDIS_URL|MAIL_URL", name)} == {*secret}
    assert [titled(m) for m in ALL if m["kind"] == "Secret"] == []


def test_data_plane_pods_have_no_access_to_the_control_plane_secret():
    for manifest in (
        CELL,
        EXECUTOR,
        one("StatefulSet", "ingest"),
        one("Deployment", "echo"),
        one("Deployment", "table-queries"),
    ):
        assert "penstock-control" not in yaml.safe_dump(manifest), titled(manifest)


def test_secrets_that_pods_reference_are_those_that_the_guide_creates():
    made = {*re.findall(r"create secret generic ([a-z-]+)", GUIDE)}
    named = {
        source["secretRef"]["name"]
        for manifest in ALL
        for container in containers(manifest)
        for source in container["envFrom"]
        if "secretRef" in source
    }
    assert named == made


def test_volumes_and_config_maps_that_pods_reference_exist():
    claims = {m["metadata"]["name"] for m in APPLIED if m["kind"] == "PersistentVolumeClaim"}
    maps = {generated["name"] for generated in KUSTOMIZATION["configMapGenerator"]}
    for manifest in ALL:
        volumes = pod_of(manifest).get("volumes", [])
        assert {v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v} <= claims
        assert {v["configMap"]["name"] for v in volumes if "configMap" in v} <= maps


@pytest.mark.parametrize("manifest", WITH_PODS)
def test_every_volume_mount_has_its_volume(manifest: dict[str, Any]):
    claims = manifest.get("spec", {}).get("volumeClaimTemplates", [])
    volumes = {v["name"] for v in pod_of(manifest)["volumes"]} | {c["metadata"]["name"] for c in claims}
    for container in containers(manifest):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_cell_templates_are_mounted_at_the_path_that_the_code_reads():
    mounts = [c["volumeMounts"] for m in (CELL, one("Deployment", "worker")) for c in pod_of(m)["containers"]]
    for mount in mounts:
        assert {"name": "cells", "mountPath": str(TEMPLATES), "readOnly": True} in mount
    assert {Path(f).name for f in KUSTOMIZATION["configMapGenerator"][0]["files"]} == {"cell.yaml", "executor.yaml"}


@pytest.mark.parametrize("manifest", WITH_PODS)
def test_no_pod_runs_as_root_writes_to_its_image_or_gains_privileges(manifest: dict[str, Any]):
    context = pod_of(manifest)["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(manifest):
        own = context | container["securityContext"]
        assert own["runAsNonRoot"] is True
        assert own.get("runAsUser") != 0
        assert own["allowPrivilegeEscalation"] is False
        assert own["readOnlyRootFilesystem"] is True
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert {"/var/penstock", "/tmp"} <= {mount["mountPath"] for mount in container["volumeMounts"]}  # noqa: S108


@pytest.mark.parametrize("manifest", WITH_PODS)
def test_only_pods_that_use_the_kubernetes_api_have_a_token(manifest: dict[str, Any]):
    pod = pod_of(manifest)
    assert pod["automountServiceAccountToken"] is (pod.get("serviceAccountName") in ("worker", "cell"))


def test_roles_are_bound_to_existing_accounts_and_allow_no_wildcard():
    accounts = {m["metadata"]["name"] for m in APPLIED if m["kind"] == "ServiceAccount"}
    roles = {m["metadata"]["name"]: m["rules"] for m in APPLIED if m["kind"] == "Role"}
    bindings = [m for m in APPLIED if m["kind"] == "RoleBinding"]
    assert {subject["name"] for binding in bindings for subject in binding["subjects"]} == accounts
    assert {binding["roleRef"]["name"] for binding in bindings} == {*roles}
    rules = chain(*roles.values())
    words = [word for rule in rules for field in ("apiGroups", "resources", "verbs") for word in rule[field]]
    assert "*" not in words
    assert "secrets" not in words
    assert [m for m in APPLIED if m["kind"].startswith("Cluster")] == []


@pytest.mark.parametrize("manifest", [pytest.param(m, id=titled(m)) for m in ALL if pod_of(m) and m["kind"] != "Job"])
def test_pods_are_spread_over_zones_by_their_own_labels(manifest: dict[str, Any]):
    (spread,) = pod_of(manifest)["topologySpreadConstraints"]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    assert spread["labelSelector"]["matchLabels"].items() <= labels_of(manifest).items()


def test_selectors_match_existing_pods():
    pods = [labels_of(m) for m in ALL if pod_of(m)]
    wanted = [m["spec"]["selector"] for m in ALL if m["kind"] == "Service"]
    wanted += [
        m["spec"]["selector"]["matchLabels"] for m in ALL if "matchLabels" in m.get("spec", {}).get("selector", {})
    ]
    assert [selector for selector in wanted if not any(selector.items() <= labels.items() for labels in pods)] == []


def test_workloads_with_several_replicas_lose_at_most_one_in_an_eviction():
    several = {m["metadata"]["name"] for m in APPLIED if pod_of(m) and m["spec"].get("replicas", 0) > 1} | {"ingest"}
    budgets = {m["metadata"]["name"]: m["spec"] for m in APPLIED if m["kind"] == "PodDisruptionBudget"}
    assert {*budgets} == several
    assert {budget["maxUnavailable"] for budget in budgets.values()} == {1}


def test_each_pod_has_at_least_the_drain_time_that_the_box_allows(tmp_path: Path):
    box = {program.name: program.stop_grace_s for program in box_programs(tmp_path)}
    for name in ("web", "echo", "table-queries", "worker", "beat", "observer"):
        assert grace_s(one("Deployment", name)) >= box[name] + wait_s(one("Deployment", name)), name
    ingest = one("StatefulSet", "ingest")
    assert grace_s(ingest) >= max(box["ingest-1"], DRAIN_S + 5) + wait_s(ingest)
    assert grace_s(CELL) >= max(box["keeper"], cell_supervisor.DRAIN_S + 2 * cell_supervisor.TERM_S)


def grace_s(manifest: dict[str, Any]) -> float:
    return float(pod_of(manifest)["terminationGracePeriodSeconds"])


def wait_s(manifest: dict[str, Any]) -> float:
    """Return how long requests may still arrive after the pod was asked to stop."""
    hook = pod_of(manifest)["containers"][0].get("lifecycle", {"preStop": {"exec": {"command": ["sleep", "0"]}}})
    return float(hook["preStop"]["exec"]["command"][1])


def test_http_servers_wait_before_they_stop_until_no_request_is_routed_to_them():
    assert wait_s(one("Deployment", "web")) >= 5
    assert wait_s(one("Deployment", "echo")) >= 5
    assert wait_s(one("Deployment", "table-queries")) >= 5
    assert wait_s(one("StatefulSet", "ingest")) >= 5


@pytest.mark.parametrize(
    ("kind", "name", "variable"),
    [
        ("Deployment", "web", "PENSTOCK_WEB_PORT"),
        ("Deployment", "echo", "PENSTOCK_ECHO_PORT"),
        ("Deployment", "table-queries", "PENSTOCK_TABLES_PORT"),
        ("StatefulSet", "ingest", "PENSTOCK_INGEST_PORT"),
    ],
)
def test_probes_use_existing_ports_and_liveness_needs_no_other_service(kind: str, name: str, variable: str):
    (container,) = pod_of(one(kind, name))["containers"]
    paths = {
        probe: container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert paths == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
    assert ports["http"] == CONFIG[variable]
    assert ports["metrics"] == CONFIG["PENSTOCK_METRICS"].rpartition(":")[2]


def compose_check(service: str) -> list[str]:
    """Return the command of the service's health check in docker-compose.yml."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    command: list[str] = compose[service]["healthcheck"]["test"][1:]
    return command


@pytest.mark.parametrize(
    ("service", "manifest"),
    [("worker", one("Deployment", "worker")), ("observer", one("Deployment", "observer")), ("keeper", CELL)],
)
def test_programs_with_only_metrics_are_ready_by_the_check_of_compose(service: str, manifest: dict[str, Any]):
    (container,) = pod_of(manifest)["containers"]
    probe = container["readinessProbe"]["httpGet"]
    port = {port["name"]: port["containerPort"] for port in container["ports"]}[probe["port"]]
    assert compose_check(service)[-1] == f"http://127.0.0.1:{port}{probe['path']}"
    assert "livenessProbe" not in container  # each exits when it cannot continue; a restart would stop lanes


def test_beat_is_restarted_by_the_check_of_compose():
    (container,) = pod_of(one("Deployment", "beat"))["containers"]
    assert {probe: container[probe]["exec"]["command"] for probe in PROBES if probe in container} == {
        "startupProbe": compose_check("beat"),
        "livenessProbe": compose_check("beat"),
    }


def test_probe_paths_are_routes_of_the_code():
    for server in ("dataplane/ingest/app.py", "dataplane/echo/app.py", "platform/config/front/app.py"):
        assert {*re.findall(r'"(/(?:livez|readyz))"', (ROOT / server).read_text())} == {"/livez", "/readyz"}, server


def test_production_has_three_replicas_of_each_partition_and_acks_with_two():
    assert (CONFIG["PENSTOCK_ENV"], CONFIG["PENSTOCK_REPLICATION"], CONFIG["PENSTOCK_MIN_ISR"]) == (
        "production",
        "3",
        "2",
    )


def test_cell_drains_before_its_next_instance_starts():
    assert CELL["spec"]["strategy"] == {"type": "Recreate"}
    assert CELL["spec"]["replicas"] == 1


def test_driver_and_executors_of_a_cell_mount_the_same_checkpoints_and_lake():
    shared = [
        {m["mountPath"]: m["subPath"] for m in container["volumeMounts"] if m["name"] == "shared"}
        for container in (*containers(CELL), *containers(EXECUTOR))
    ]
    both = {"/var/penstock/data/checkpoints": "checkpoints", "/var/penstock/lake": "lake"}
    assert all(both.items() <= mounts.items() for mounts in shared)


def test_every_image_is_the_one_that_kustomize_sets_and_the_worker_knows_its_own():
    images = {container["image"] for manifest in APPLIED for container in containers(manifest)}
    assert images == {KUSTOMIZATION["images"][0]["name"]}
    (replacement,) = KUSTOMIZATION["replacements"]
    assert "[name=POD_IMAGE]" in replacement["targets"][0]["fieldPaths"][0]
    (worker,) = pod_of(one("Deployment", "worker"))["containers"]
    assert {"POD_NAME", "POD_NAMESPACE", "POD_IP", "POD_IMAGE"} == {variable["name"] for variable in worker["env"]}


def test_no_program_that_calls_customers_urls_can_reach_the_metadata_service():
    policy = one("NetworkPolicy", "no-metadata")["spec"]
    assert policy["policyTypes"] == ["Egress"]
    (chosen,) = policy["podSelector"]["matchExpressions"]
    callers = (EXECUTOR, *(one("Deployment", name) for name in ("worker", "observer", "web")))
    assert chosen["operator"] == "In"
    assert {*chosen["values"]} == {labels_of(caller)[chosen["key"]] for caller in callers}
    blocks = [to["ipBlock"] for rule in policy["egress"] for to in rule.get("to", [])]
    excluded = {block["cidr"]: block["except"] for block in blocks}
    assert excluded == {"0.0.0.0/0": ["169.254.0.0/16"], "::/0": ["fd00:ec2::254/128"]}
    anywhere = [port["port"] for rule in policy["egress"] if "to" not in rule for port in rule["ports"]]
    assert {*anywhere} == {53}, "only names are resolved at any address"


def test_guide_backs_up_every_claim_and_secret():
    claims = [m["metadata"]["name"] for m in APPLIED if m["kind"] == "PersistentVolumeClaim"]
    claims += [
        f"{template['metadata']['name']}-{m['metadata']['name']}-..."
        for m in APPLIED
        for template in m.get("spec", {}).get("volumeClaimTemplates", [])
    ]
    sources = [source for m in APPLIED for container in containers(m) for source in container.get("envFrom", [])]
    secrets = {s["secretRef"]["name"] for s in sources if "secretRef" in s and not s["secretRef"].get("optional")}
    section = GUIDE.partition("## Back up")[2].partition("## Differences")[0]
    assert [name for name in [*claims, *secrets] if f"`{name}`" not in section] == []
    assert len(claims) == len(secrets) == 2
