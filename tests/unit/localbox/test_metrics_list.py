"""The list of metrics matches the reference page, the dashboard, the alerts and the scrape configuration."""

import json
import re

import pytest
import yaml

from dataplane.metrics import BY_NAME, METRICS, Metric, page
from localbox.catalogue import SHOWN
from localbox.settings import ROOT

DASHBOARD = (ROOT / "deploy" / "grafana" / "penstock.json").read_text()
ALARMS = (ROOT / "deploy" / "penstock-alerts.yml").read_text()
SCRAPED = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def named(text: str) -> set[str]:
    """Return the metrics named in expressions, histograms without the suffixes that Prometheus adds."""
    found = set(re.findall(r"\bpenstock_[a-z_]+", text))
    series = {name: re.sub(r"_(bucket|count|sum)$", "", name) for name in found}
    return {series[name] if BY_NAME.get(series[name]) in HISTOGRAMS else name for name in found}


HISTOGRAMS = {metric for metric in METRICS if metric.kind == "histogram"}


def expressions(dashboard: str) -> list[str]:
    return [target["expr"] for panel in json.loads(dashboard)["panels"] for target in panel["targets"]]


def test_reference_page_is_generated_from_the_list():
    assert (ROOT / "docs" / "reference" / "metrics.md").read_text() == page(), "run `make reference`"


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_metric_names_follow_the_conventions(metric: Metric):
    assert re.fullmatch(r"penstock(_[a-z]+)+", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    if metric.unit in ("seconds", "bytes"):
        assert re.search(rf"_{metric.unit}(_total)?$", metric.name)
    assert not {"tenant", "pipe", "message"} & set(metric.labels)
    assert metric.says.endswith(".")
    assert metric.rise.endswith(".")


def test_metric_names_are_unique():
    assert len(BY_NAME) == len(METRICS)


def test_dashboard_shows_every_metric_and_no_unknown_one():
    assert named(" ".join(expressions(DASHBOARD))) == set(BY_NAME)


def test_each_query_of_a_panel_has_its_own_id():
    for panel in json.loads(DASHBOARD)["panels"]:
        ids = [target["refId"] for target in panel["targets"]]
        assert len(set(ids)) == len(ids), panel["title"]


def test_alerts_use_only_existing_metrics():
    rules = [rule for group in yaml.safe_load(ALARMS)["groups"] for rule in group["rules"]]
    assert rules
    assert named(" ".join(rule["expr"] for rule in rules)) - set(BY_NAME) == set()


def test_each_alarm_has_a_severity_and_a_next_step_in_the_runbook():
    section = (ROOT / "docs" / "operations.md").read_text().partition("## Alarms")[2].partition("\n## ")[0]
    rows = [row.split("|") for row in section.splitlines() if row.startswith("| `")]
    listed = {name: severity for _, names, severity, *_ in rows for name in re.findall(r"`(\w+)`", names)}
    rules = [rule for group in yaml.safe_load(ALARMS)["groups"] for rule in group["rules"]]
    assert listed.keys() == {rule["alert"] for rule in rules}
    for rule in rules:
        assert rule["labels"]["severity"] in listed[rule["alert"]]


def test_prometheus_scrapes_every_process_that_exposes_metrics():
    (job,) = SCRAPED["scrape_configs"]
    asked = {one["labels"]["process"]: one["targets"] for one in job["static_configs"]}
    assert set(asked) == set(SHOWN)
    for process, (target,) in asked.items():
        assert target == f"{process}:{COMPOSE[process]['environment']['PENSTOCK_METRICS'].rpartition(':')[2]}"
