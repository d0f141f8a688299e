"""Every claim on a proof page names existing tests, and the check for that can fail."""

from pathlib import Path
from typing import Final

import pytest

from localbox.settings import ROOT
from tests.support.proofs import claims, what_is_wrong

PAGES: Final = sorted((ROOT / "docs" / "proof").glob("*.md"))
SUITE: Final = """
import pytest

@pytest.mark.parametrize("n", [1])
def test_short(n): ...

@pytest.mark.long
@pytest.mark.timeout(900)
def test_slow(): ...

def helper(): ...

TestMachine = Machine.TestCase
"""
SHOWN: Final = "`tests/test_it.py::test_short`, `tests/test_it.py::test_slow` (long)<br>`tests/test_it.py::TestMachine`"


def page(cell: str, heading: str = "shown by") -> str:
    return f"# Words\n\n| what | {heading} |\n|---|---|\n| it holds | {cell} |\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(SUITE)
    return tmp_path


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_names_existing_tests(path: Path):
    assert not what_is_wrong(path.read_text(), ROOT)


def test_every_fault_of_destinations_and_retrier_has_a_row():
    rows = [claim.what for claim in claims((ROOT / "docs" / "proof" / "delivery.md").read_text())]
    assert {str(number) for number in range(39, 56)} <= set(rows)


def test_every_fault_of_the_control_plane_has_a_row():
    rows = [claim.what for claim in claims((ROOT / "docs" / "proof" / "control.md").read_text())]
    assert {str(number) for number in range(28, 39)} <= set(rows)


def test_row_with_existing_tests_is_accepted(suite: Path):
    assert not what_is_wrong(page(SHOWN), suite)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        pytest.param("", "names no test", id="nothing"),
        pytest.param("by design", "names no test", id="words"),
        pytest.param("`tests/test_no.py::test_short`", "there is no file", id="no such file"),
        pytest.param("`tests/test_it.py::test_gone`", "there is no test", id="no such test"),
        pytest.param("`tests/test_it.py::helper`", "there is no test", id="a function that is no test"),
        pytest.param("`tests/test_it.py`", "there is no test", id="a whole file"),
        pytest.param("`tests/test_it.py::test_slow`", "needs the word", id="long and not called so"),
        pytest.param("`tests/test_it.py::test_short` (long)", "must not carry", id="called long and is not"),
    ],
)
def test_row_without_valid_evidence_is_reported(suite: Path, cell: str, why: str):
    (wrong,) = what_is_wrong(page(cell), suite)
    assert wrong.startswith("it holds: ")
    assert why in wrong


def test_page_without_a_table_of_claims_is_reported(suite: Path):
    assert what_is_wrong(page("`tests/test_it.py::test_short`", heading="measured"), suite)
