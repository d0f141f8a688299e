"""A bug can be planted only where its code still stands; whoever moves that learns it here, and not in the long run."""

import pytest

from localbox.settings import ROOT
from tests.rig.bugs import BUGS, Bug


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_the_code_of_a_bug_stands_once_and_its_check_is_there(bug: Bug):
    assert (ROOT / bug.file).read_text().count(bug.code) == 1, "change tests/rig/bugs.py along with the code"
    file, _, name = bug.check.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()
