"""Types of operational events: names, and the generated reference page."""

import re
from pathlib import Path

import pytest

from dataplane.spec import wants_event
from dataplane.spec.sources import OPERATIONAL_PATTERN
from mgmt.audit.actions import ACTIONS
from mgmt.operational_events.reference import page
from mgmt.operational_events.types import OPERATIONAL_TYPES, TYPE_OF_ACTION

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "operational-events.md"


def test_page_is_generated_from_the_types():
    assert REFERENCE.read_text() == page(), "run `make reference`"


@pytest.mark.parametrize("type_", OPERATIONAL_TYPES)
def test_every_type_can_be_chosen_by_a_source(type_: str):
    assert re.fullmatch(OPERATIONAL_PATTERN, type_)
    assert wants_event(("penstock.*",), type_)
    assert len(type_) <= 60, "the length of its column"


def test_changes_of_members_tokens_and_settings_are_no_operational_events():
    """Only owners may read these in the audit log, but any editor may publish a revision with the source."""
    subjects = {action.partition(".")[0] for action in TYPE_OF_ACTION}
    assert subjects == {"destination", "pipe", "ramp", "revision"}
    assert {type_.split(".")[1] for type_ in OPERATIONAL_TYPES} == {"alert", "destination", "pipe", "revision"}


def test_action_has_a_type_of_the_table():
    assert TYPE_OF_ACTION.keys() <= ACTIONS.keys()
    assert set(TYPE_OF_ACTION.values()) < OPERATIONAL_TYPES.keys()
