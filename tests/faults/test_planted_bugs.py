"""With a bug planted in a copy of the code, its named check fails; in a copy without a bug, every check passes."""

from itertools import groupby
from pathlib import Path

import pytest

from tests.support.bugs import BUGS, Bug, MovedError, copy_code, plant, run_checks

pytestmark = pytest.mark.timeout(900)
FAILED = 1  # pytest's exit code when tests ran and some failed


@pytest.fixture
def code(tmp_path: Path) -> Path:
    copy_code(tmp_path / "code")
    return tmp_path / "code"


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_planted_bug_is_caught_by_its_check(code: Path, kafka_servers: str, bug: Bug):
    plant(bug, code)
    ended, output = run_checks(code, [bug.check], {"PENSTOCK_KAFKA": kafka_servers})
    assert ended == FAILED, output
    assert f"FAILED {bug.check}" in output


@pytest.mark.long
def test_checks_pass_in_a_copy_without_a_bug(code: Path, kafka_servers: str):
    """Otherwise a check could fail because of something that the copy lacks. Each kind of test has its services."""
    checks = sorted({bug.check for bug in BUGS})
    for _, same_kind in groupby(checks, lambda check: check.split("/")[1]):
        ended, output = run_checks(code, list(same_kind), {"PENSTOCK_KAFKA": kafka_servers})
        assert ended == 0, output


def test_bug_whose_code_has_moved_is_reported(code: Path):
    with pytest.raises(MovedError, match="needs it once"):
        plant(BUGS[0]._replace(code="nothing like this"), code)
