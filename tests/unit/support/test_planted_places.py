"""A bug can be planted only while its code is unchanged; a change fails here, not in the long run."""

import pytest

from localbox.settings import ROOT
from tests.support.bugs import BUGS, Bug


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_code_of_a_planted_bug_occurs_once_and_its_check_exists(bug: Bug):
    assert (ROOT / bug.file).read_text().count(bug.code) == 1, "change tests/support/bugs.py along with the code"
    file, _, name = bug.check.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()
