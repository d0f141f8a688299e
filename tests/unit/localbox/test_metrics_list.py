"""The list of metrics against what is written from it and what is drawn of it: neither may name what is not there."""

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
    """The metrics that expressions name, histograms without what Prometheus puts behind their names."""
    found = set(re.findall(r"\bpenstock_[a-z_]+", text))
    series = {name: re.sub(r"_(bucket|count|sum)$", "", name) for name in found}
    return {series[name] if BY_NAME.get(series[name]) in HISTOGRAMS else name for name in found}


HISTOGRAMS = {metric for metric in METRICS if metric.kind == "histogram"}


def expressions(dashboard: str) -> list[str]:
    return [target["expr"] for panel in json.loads(dashboard)["panels"] for target in panel["targets"]]


def test_the_page_is_the_one_that_the_list_writes():
    assert (ROOT / "docs" / "reference" / "metrics.md").read_text() == page(), "run `make reference`"


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_keep_to_the_conventions(metric: Metric):
    assert re.fullmatch(r"penstock(_[a-z]+)+", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    if metric.unit in ("seconds", "bytes"):
        assert re.search(rf"_{metric.unit}(_total)?$", metric.name)
    assert not {"tenant", "pipe", "message"} & set(metric.labels)
    assert metric.says.endswith(".")
    assert metric.rise.endswith(".")


def test_no_name_stands_twice():
    assert len(BY_NAME) == len(METRICS)


def test_the_dashboard_draws_every_metric_and_none_that_is_not_there():
    assert named(" ".join(expressions(DASHBOARD))) == set(BY_NAME)


def test_the_alarms_name_only_metrics_that_are_there():
    rules = [rule for group in yaml.safe_load(ALARMS)["groups"] for rule in group["rules"]]
    assert rules
    assert named(" ".join(rule["expr"] for rule in rules)) - set(BY_NAME) == set()


def test_prometheus_asks_every_process_that_answers():
    (job,) = SCRAPED["scrape_configs"]
    asked = {one["labels"]["process"]: one["targets"] for one in job["static_configs"]}
    assert set(asked) == set(SHOWN)
    for process, (target,) in asked.items():
        host = COMPOSE[process].get("network_mode", f"service:{process}").removeprefix("service:")
        assert target == f"{host}:{COMPOSE[process]['environment']['PENSTOCK_METRICS'].rpartition(':')[2]}"
