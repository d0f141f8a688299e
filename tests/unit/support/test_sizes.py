"""Sizes of long campaigns are set by variables, and CONTRIBUTING lists each with its usual size."""

import re

import pytest

from localbox.settings import ROOT
from tests.support.sizes import size


def test_variable_sets_a_larger_size(monkeypatch: pytest.MonkeyPatch):
    assert size("PENSTOCK_KILLS_OF_A_TEST", 4) == 4
    monkeypatch.setenv("PENSTOCK_KILLS_OF_A_TEST", "20")
    assert size("PENSTOCK_KILLS_OF_A_TEST", 4) == 20


def test_contributing_lists_each_variable_with_its_usual_size():
    code, text = ((ROOT / name).read_text() for name in ("tests/support/sizes.py", "CONTRIBUTING.md"))
    sizes = re.findall(r'size\("(\w+)", ([\d_]+)\)', code)
    assert len(sizes) > 5
    assert [name for name, usual in sizes if not re.search(rf"\| `{name}` \| [^|]*\b{int(usual):,}", text)] == []
