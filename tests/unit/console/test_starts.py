"""What a new pipe may start from: each start is a spec that runs, that the form can hold, and that its event shows."""

import itertools
import json
from dataclasses import replace

import pytest

from dataplane.plan import compile_plan
from dataplane.plan.dryrun import DryRun, Sample, dry_run
from dataplane.spec import parse_pipe_spec
from mgmt.console.editor.draft import fits_form
from mgmt.console.editor.starts import STARTS, Start, draft_of, start_named

EVERY = pytest.mark.parametrize("start", STARTS, ids=[start.name for start in STARTS])


def run(start: Start) -> DryRun:
    spec = parse_pipe_spec(start.document)
    sample = Sample(json.dumps(start.sample).encode(), next(iter(spec.sources)), "msg_1", 0, 0)
    return dry_run(spec, compile_plan(spec, b"salt"), sample, itertools.count().__next__)


@EVERY
def test_a_start_is_a_spec_that_the_form_can_hold(start: Start):
    assert fits_form(start.document)
    draft = draft_of(start)
    assert not draft.as_json
    assert all(row.url == "" for row in draft.destinations)


@EVERY
def test_a_start_with_its_urls_filled_in_is_the_spec_it_says(start: Start):
    draft = draft_of(start)
    filled = tuple(replace(row, url="https://example.com/hooks") for row in draft.destinations)
    assert parse_pipe_spec(replace(draft, destinations=filled).document()) == parse_pipe_spec(start.document)


@EVERY
def test_a_starts_event_reaches_every_destination(start: Start):
    assert {request.destination for request in run(start).requests} == set(start.document["destinations"])


def test_nobodys_name_leaves_the_start_without_personal_data():
    start = start_named("personal-data")
    assert start
    (request,) = run(start).requests
    assert "Ada" not in request.body
    assert "ada@" not in request.body
    assert "7946" not in request.body


def test_a_small_order_goes_to_one_place():
    start = start_named("big-orders")
    assert start
    small = replace(start, sample=dict(start.sample) | {"total": 12})
    assert [request.destination for request in run(small).requests] == ["books"]


def test_a_name_that_is_no_starts_is_blank():
    assert start_named("nothing of the kind") is None


def test_names_are_used_once():
    assert len({start.name for start in STARTS}) == len(STARTS)
