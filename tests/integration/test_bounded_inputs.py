"""No input that may come stops the service: each is within 50 ms and 32 MB, on every path that it may take.

Each case is run in a process of its own; see tests.rig.bounded for how it is measured on a machine that is busy.
"""

from typing import get_args

import pytest

from dataplane.expr import nodes
from dataplane.expr.functions import FUNCTIONS
from dataplane.expr.operators import OPERATORS
from tests.corpus.inputs import inputs
from tests.rig import expression_bounds
from tests.rig.bounded import run


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", ["ingest", "dry run", "lanes"])
def test_no_input_of_the_corpus_takes_more_than_50_ms_or_32_mb(path: str):
    spent = run("tests.corpus.paths", path)
    assert len(spent) > 300
    assert [str(one) for one in spent if one.is_over] == []


def test_the_corpus_has_inputs_of_every_kind_each_with_a_name_of_its_own():
    names = [one.name for one in inputs()]
    assert len(names) == len(set(names)) > 300
    kinds = ("shape", "number", "expression", "steps", "header", "CloudEvent", "query", "request: gzip")
    assert [kind for kind in kinds if not any(name.startswith(kind) for name in names)] == []


@pytest.mark.timeout(900)
def test_no_operator_function_or_form_of_the_language_takes_more_than_50_ms_or_32_mb():
    """Also those that are written later: what there is comes from the tables of the compiler."""
    spent = run("tests.rig.expression_bounds")
    assert len(spent) > 400
    assert [str(one) for one in spent if one.is_over] == []


def test_what_is_measured_is_the_whole_language():
    texts = list(expression_bounds.all_texts())
    assert {name for name, *_ in FUNCTIONS if not any(f"{name}(" in text for text in texts)} == set()
    assert {sign for sign in OPERATORS if not any(f" {sign} " in text for text in texts)} == set()
    assert {kind for kind in get_args(nodes.Comprehend) if not any(f".{kind}(" in text for text in texts)} == set()
    found = {kind for text in texts[:: len(texts) // 150] for kind in expression_bounds.node_types(text)}
    found |= {kind for text in expression_bounds.forms() for kind in expression_bounds.node_types(text)}
    assert {kind.__name__ for kind in get_args(nodes.Node)} <= found
