"""Templates of pipes: each is a valid spec that fits the form, and its event reaches every destination."""

import itertools
import json
from dataclasses import replace

import pytest

from dataplane.plan import compile_plan
from dataplane.plan.dryrun import DryRun, SampleEvent, dry_run
from dataplane.spec import parse_pipe_spec
from mgmt.pipes.editor.draft import fits_form
from mgmt.pipes.editor.templates import STARTS, PipeTemplate, draft_of, template_named

EVERY = pytest.mark.parametrize("start", STARTS, ids=[start.name for start in STARTS])


def run(start: PipeTemplate) -> DryRun:
    spec = parse_pipe_spec(start.document)
    sample = SampleEvent(json.dumps(start.sample).encode(), next(iter(spec.sources)), "msg_1", 0, 0)
    return dry_run(spec, compile_plan(spec, b"salt"), sample, itertools.count().__next__)


@EVERY
def test_template_is_a_spec_that_fits_the_form(start: PipeTemplate):
    assert fits_form(start.document)
    draft = draft_of(start)
    assert not draft.as_json
    assert all(row.url == "" for row in draft.destinations)


@EVERY
def test_template_with_its_urls_filled_in_equals_its_spec(start: PipeTemplate):
    draft = draft_of(start)
    filled = tuple(replace(row, url="https://example.com/hooks") for row in draft.destinations)
    assert parse_pipe_spec(replace(draft, destinations=filled).document()) == parse_pipe_spec(start.document)


@EVERY
def test_template_event_reaches_every_destination(start: PipeTemplate):
    assert {request.destination for request in run(start).requests} == set(start.document["destinations"])


def test_personal_data_template_sends_no_personal_data():
    start = template_named("personal-data")
    assert start
    (request,) = run(start).requests
    assert "Ada" not in request.body
    assert "ada@" not in request.body
    assert "7946" not in request.body


def test_small_order_reaches_only_one_destination():
    start = template_named("big-orders")
    assert start
    small = replace(start, sample=dict(start.sample) | {"total": 12})
    assert [request.destination for request in run(small).requests] == ["books"]


def test_unknown_template_name_gives_none():
    assert template_named("nothing of the kind") is None


def test_template_names_are_unique():
    assert len({start.name for start in STARTS}) == len(STARTS)
