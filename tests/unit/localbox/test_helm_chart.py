"""The Helm chart and deploy/kubernetes have the same versions, variables and policies.

tests/integration/test_helm_chart.py renders and compares both.
"""

import json
import tomllib
from typing import Any

import yaml

from localbox.settings import ROOT

CHART = ROOT / "deploy" / "helm" / "penstock"
MANIFESTS = ROOT / "deploy" / "kubernetes"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
CONFIG: dict[str, str] = yaml.safe_load((MANIFESTS / "config.yaml").read_text())["data"]


def test_versions_are_that_of_the_project():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (image,) = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["images"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["x-ours"]["image"]
    assert {chart["version"], chart["appVersion"], image["newTag"], compose.rpartition(":")[2]} == {project}


def test_variables_are_those_of_the_manifests_and_the_schema_knows_no_other():
    assert VALUES["config"] == CONFIG
    otel, ours = SCHEMA["properties"]["config"]["propertyNames"]["anyOf"]
    assert otel == {"pattern": "^OTEL_[A-Z_]+$"}
    assert {*ours["enum"]} == {name for name in CONFIG if not name.startswith("OTEL_")}


def test_every_value_has_a_schema():
    assert {*SCHEMA["properties"]} == {*VALUES, "global"}
    for name, value in VALUES.items():
        described = SCHEMA["properties"][name]
        reference = described.get("$ref", "").rpartition("/")[2]
        known = (SCHEMA["$defs"][reference] if reference else described).get("properties", {})
        assert name == "config" or {*known} == {*value}, name


def test_network_policies_and_roles_are_those_of_the_manifests():
    assert (CHART / "templates" / "network.yaml").read_text() == (MANIFESTS / "network.yaml").read_text()
    accounts = (CHART / "templates" / "accounts.yaml").read_text()
    assert accounts.replace("{{ .Release.Namespace }}", "penstock") == (MANIFESTS / "accounts.yaml").read_text()


def test_chart_contains_no_secret():
    assert [path for path in CHART.rglob("*.*") if "kind: Secret\n" in path.read_text()] == []
