"""No input stops the service: each stays within 50 ms and 32 MB, on every path that it can reach.

Each case runs in a process of its own; tests.support.bounded describes the measurement on a busy machine.
"""

from typing import get_args

import pytest

from dataplane.expr import nodes
from dataplane.expr.functions import FUNCTIONS
from dataplane.expr.operators import OPERATORS
from tests.corpus.inputs import inputs
from tests.support import expression_bounds
from tests.support.bounded import run

PATHS = pytest.mark.parametrize("path", ["ingest", "dry run", "lanes"])


@pytest.mark.timeout(900)
@PATHS
def test_random_quarter_of_the_corpus_stays_within_50_ms_and_32_mb(path: str):
    check_corpus(path, one_of=4, least=75)


@pytest.mark.long
@pytest.mark.timeout(900)
@PATHS
def test_no_input_of_the_corpus_exceeds_50_ms_or_32_mb(path: str):
    check_corpus(path, one_of=1, least=300)


def check_corpus(path: str, *, one_of: int, least: int) -> None:
    """Check one of so many inputs of the corpus, more than `least`."""
    spent = run("tests.corpus.paths", path, str(one_of))
    assert len(spent) > least
    assert [str(one) for one in spent if one.is_over] == []


def test_corpus_has_uniquely_named_inputs_of_every_kind():
    names = [one.name for one in inputs()]
    assert len(names) == len(set(names)) > 300
    kinds = ("shape", "number", "expression", "steps", "header", "CloudEvent", "query", "request: gzip", "webhook")
    assert [kind for kind in kinds if not any(name.startswith(kind) for name in names)] == []


@pytest.mark.timeout(900)
def test_no_operator_function_or_form_of_the_language_exceeds_50_ms_or_32_mb():
    """Later additions are included: the list comes from the tables of the compiler."""
    spent = run("tests.support.expression_bounds")
    assert len(spent) > 400
    assert [str(one) for one in spent if one.is_over] == []


def test_measured_expressions_cover_the_whole_language():
    texts = list(expression_bounds.all_texts())
    for some in (texts, expression_bounds.working()):
        assert {name for name, *_ in FUNCTIONS if not any(f"{name}(" in text for text in some)} == set()
        assert {sign for sign in OPERATORS if not any(f" {sign} " in text for text in some)} == set()
    assert {
        kind for kind in get_args(nodes.ComprehensionKind) if not any(f".{kind}(" in text for text in texts)
    } == set()
    found = {kind for text in texts[:: len(texts) // 150] for kind in expression_bounds.node_types(text)}
    found |= {kind for text in expression_bounds.forms() for kind in expression_bounds.node_types(text)}
    assert {kind.__name__ for kind in get_args(nodes.Node)} <= found
