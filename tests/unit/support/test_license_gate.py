"""Every package that Penstock needs has a license that is allowed."""

from pathlib import Path

import pytest

from localbox.settings import ROOT
from tests.license_gate import licenses_of, names_in, not_allowed


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-box.lock"])
def test_licenses_of_the_locked_packages_are_allowed(lock: str):
    names = names_in(Path(ROOT / lock).read_text())
    packages = licenses_of(names)
    assert len(packages) == len(names) > 50
    assert not_allowed(packages) == []


@pytest.mark.parametrize(
    "text", ["GPL-3.0-only", "AGPL-3.0", "SSPL-1.0", "UNKNOWN", "Other/Proprietary License", "MIT AND GPL-3.0-only", ""]
)
def test_other_licenses_are_refused(text: str):
    assert not_allowed([{"Name": "x", "License": text}]) == [f"x: {text}"]


def test_names_of_a_lock_are_read_without_hashes_and_comments():
    lock = "# made by uv\na-b==1 \\\n    --hash=sha256:1\n    # via c\nd[e]==2\n"
    assert names_in(lock) == ["a-b", "d"]
