"""Actions of the audit log: names, sentences, and the generated reference page."""

import re
from pathlib import Path

import pytest

from mgmt.audit.actions import ACTIONS, sentence
from mgmt.audit.reference import page

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "audit-actions.md"
SECRETS = re.compile("secret|password|salt|digest|body|value")


def test_page_is_generated_from_the_actions():
    assert REFERENCE.read_text() == page(), "run `make reference`"


@pytest.mark.parametrize("name", ACTIONS)
def test_action_is_a_noun_and_a_past_verb_with_a_sentence_about_its_target(name: str):
    assert re.fullmatch(r"[a-z_]+\.([a-z]+_)*(held|set|sent|resent|spread|[a-z]+ed)(_back)?", name)
    assert ACTIONS[name].words.count("{target}") == 1
    assert not [field for field in ACTIONS[name].fields if SECRETS.search(field)]


def test_sentence_names_actor_target_and_pipe():
    assert sentence("pipe.paused", actor="ann", target="orders") == "ann paused pipe orders"
    words = sentence("key.revoked", actor="ann (token ci)", target="web", pipe="orders")
    assert words == "ann (token ci) revoked API key web of pipe orders"
    assert sentence("pipe.closed", actor="ann", target="{target} {x}") == "ann closed pipe {target} {x}"


def test_action_of_another_release_is_shown_by_its_name():
    assert sentence("pipe.painted", actor="ann", target="orders") == "ann pipe.painted orders"
