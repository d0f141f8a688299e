"""Differences between Linux and macOS: the number of ingest replicas and the place of the browser."""

from pathlib import Path

import pytest

from localbox.catalogue import expected_replica, programs
from localbox.settings import replicas_least, replicas_most, settings_from
from tests.support.chromium import find_chromium


@pytest.mark.parametrize(
    ("balances", "cores", "least", "most"),
    [(True, 1, 2, 2), (True, 2, 2, 2), (True, 16, 2, 8), (False, 1, 1, 1), (False, 16, 1, 1)],
)
def test_one_replica_of_ingest_where_a_shared_port_is_not_balanced(balances: bool, cores: int, least: int, most: int):
    assert replicas_least(balances=balances) == least
    assert replicas_most(cores, balances=balances) == most


@pytest.mark.parametrize(("balances", "expected"), [(True, '"ingest-1"'), (False, "")])
def test_readiness_of_a_replica_waits_for_its_name_only_where_it_gets_requests(balances: bool, expected: str):
    assert expected_replica("ingest-1", balances=balances) == expected


def test_box_has_the_least_number_of_replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    settings = settings_from({"PENSTOCK_VAR": str(tmp_path)}, dotenv=None)
    for least in (1, 2):
        monkeypatch.setattr("localbox.catalogue.replicas_least", lambda number=least: number)
        names = ["ingest-1", "ingest-2"][:least]
        assert [p.name for p in programs(settings) if p.name.startswith("ingest-")] == names


@pytest.mark.parametrize(
    ("present", "found"),
    [
        ([], None),
        (["chromium"], "chromium"),
        (["chromium-browser"], "chromium-browser"),
        (["google-chrome-stable", "google-chrome"], "google-chrome"),
        (["google-chrome-stable"], "google-chrome-stable"),
        (["/snap/bin/chromium"], "/snap/bin/chromium"),
        (["/Applications/Chromium.app/Contents/MacOS/Chromium"], "/Applications/Chromium.app/Contents/MacOS/Chromium"),
        (
            ["/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"],
            "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        ),
        (["google-chrome", "chromium"], "chromium"),
    ],
)
def test_browser_is_found_by_its_usual_names(present: list[str], found: str | None):
    assert find_chromium(lambda name: name if name in present else None) == found
