"""Revisions: each is a new immutable row, and the later of two concurrent edits is refused."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import IntegrityError, connection, transaction

from dataplane.spec import SpecError
from mgmt.models import Destination, Pipe, PipeRevision, Tenant, User
from mgmt.services import (
    NameTakenError,
    PipeClosedError,
    RevisionConflictError,
    adopt_live_spec,
    close_pipe,
    create_pipe,
    publish_revision,
    rename_pipe,
    reopen_pipe,
    signing_secrets,
)
from tests.db.cast import MakeSpec

State = PipeRevision.State


def test_new_pipe_has_its_first_revision_its_sources_and_destinations_with_a_secret(pipe: Pipe):
    assert [r.number for r in pipe.revisions.all()] == [1]
    assert [s.name for s in pipe.sources.all()] == ["shop"]
    crm = pipe.destinations.get()
    assert crm.config["url"] == "https://crm.example.com/in"
    assert signing_secrets(destination=crm)[0].startswith("whsec_")


def test_pipe_name_is_unique_per_tenant(pipe: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec):
    with pytest.raises(NameTakenError, match="Choose another"):
        create_pipe(tenant=tenant, name=" orders ", spec=a_spec(), author=alice)
    other = create_pipe(tenant=tenant, name="refunds", spec=a_spec(), author=alice)
    with pytest.raises(NameTakenError):
        rename_pipe(pipe=other, name="orders")


def test_invalid_spec_creates_no_pipe(tenant: Tenant, alice: User, a_spec: MakeSpec):
    with pytest.raises(SpecError):
        create_pipe(tenant=tenant, name="broken", spec=a_spec(crm="ftp://nowhere.example"), author=alice)
    assert not Pipe.objects.exists()


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", float("inf")], ids=["NUL", "half a character", "infinity"])
def test_value_that_cannot_be_stored_or_published_is_refused(
    tenant: Tenant, alice: User, a_spec: MakeSpec, value: object
):
    spec = a_spec() | {"normalize": [{"op": "set", "path": "x", "value": value}]}
    with pytest.raises(SpecError):
        create_pipe(tenant=tenant, name="odd", spec=spec, author=alice)


def test_backslash_before_u0000_is_plain_text(tenant: Tenant, alice: User, a_spec: MakeSpec):
    spec = a_spec() | {"normalize": [{"op": "set", "path": "x", "value": "\\u0000"}]}
    assert create_pipe(tenant=tenant, name="fine", spec=spec, author=alice).revisions.get().spec["normalize"]


def test_next_revision_adds_the_rows_it_names_and_changes_no_other(pipe: Pipe, bob: User, a_spec: MakeSpec):
    before = pipe.destinations.get()
    spec = a_spec(crm="https://new.example.com/", audit="https://audit.example.com/")
    revision = publish_revision(pipe=pipe, spec=spec, based_on=1, author=bob)
    assert (revision.number, revision.state, revision.author) == (2, State.REQUESTED, bob)
    assert set(pipe.destinations.values_list("name", flat=True)) == {"crm", "audit"}
    assert pipe.destinations.get(name="crm").config == before.config, "an address changes when the revision is live"


def test_later_of_two_edits_is_refused(pipe: Pipe, alice: User, bob: User, a_spec: MakeSpec):
    publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    with pytest.raises(RevisionConflictError, match="newer revision than 1"):
        publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=bob)
    assert pipe.revisions.count() == 2


@pytest.mark.django_db(transaction=True)
def test_exactly_one_of_two_concurrent_edits_is_stored(pipe: Pipe, alice: User, a_spec: MakeSpec):
    both = Barrier(2)

    def publish(_index: int) -> bool:
        both.wait(10)
        try:
            publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
        except RevisionConflictError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(publish, range(2))) == [False, True]
    assert pipe.revisions.count() == 2


def test_published_revision_cannot_be_changed_or_deleted_by_anyone(pipe: Pipe):
    with pytest.raises(IntegrityError, match="revision_is_immutable"), transaction.atomic():
        PipeRevision.objects.filter(pipe=pipe).update(spec={})
    with pytest.raises(IntegrityError, match="revision_is_immutable"), transaction.atomic():
        pipe.revisions.get().delete()


def test_closed_pipe_refuses_revisions_until_it_is_reopened(pipe: Pipe, alice: User, a_spec: MakeSpec):
    assert close_pipe(pipe=pipe)
    assert not close_pipe(pipe=pipe)
    with pytest.raises(PipeClosedError, match="Open it again"):
        publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    assert reopen_pipe(pipe=pipe)
    assert publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice).number == 2


def test_every_change_of_a_pipe_raises_its_version(pipe: Pipe, alice: User, a_spec: MakeSpec):
    versions = [pipe.version]
    for change in (close_pipe, reopen_pipe):
        change(pipe=pipe)
        versions.append(pipe.version)
    versions.append(rename_pipe(pipe=pipe, name="sales").version)
    publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    pipe.refresh_from_db()
    versions.append(pipe.version)
    assert versions == sorted(set(versions))


def test_going_live_retires_the_previous_revision_and_applies_the_new_addresses(
    pipe: Pipe, alice: User, a_spec: MakeSpec
):
    first = pipe.revisions.get()
    _make_live(first)
    spec = a_spec(crm="https://new.example.com/", audit="https://audit.example.com/")
    second = publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    assert _make_live(second)
    first.refresh_from_db()
    assert (first.state, second.state) == (State.RETIRED, State.LIVE)
    crm = pipe.destinations.get(name="crm")
    assert (crm.config["url"], crm.version) == ("https://new.example.com/", 2)


def test_destination_missing_from_the_live_revision_is_removed_and_can_return(
    pipe: Pipe, alice: User, a_spec: MakeSpec
):
    _make_live(pipe.revisions.get())
    _make_live(publish_revision(pipe=pipe, spec=a_spec(audit="https://a.example.com/"), based_on=1, author=alice))
    assert pipe.destinations.get(name="crm").state == Destination.State.REMOVED
    back = publish_revision(pipe=pipe, spec=a_spec(crm="https://b.example.com/"), based_on=2, author=alice)
    crm = pipe.destinations.get(name="crm")
    assert (crm.state, crm.version) == (Destination.State.ACTIVE, 3), "lanes cancel what is sent to a removed one"
    assert crm.config["url"] == "https://b.example.com/"
    back.refresh_from_db()
    _make_live(back)
    crm.refresh_from_db()
    assert (crm.state, crm.version) == (Destination.State.ACTIVE, 3)


def test_going_live_twice_changes_destinations_once(pipe: Pipe):
    revision = pipe.revisions.get()
    _make_live(revision)
    version = pipe.destinations.get().version
    assert adopt_live_spec(revision=revision)
    assert pipe.destinations.get().version == version


def test_only_a_ramping_revision_becomes_live(pipe: Pipe):
    revision = pipe.revisions.get()
    assert not adopt_live_spec(revision=revision)
    revision.refresh_from_db()
    assert revision.state == State.REQUESTED


def _make_live(revision: PipeRevision) -> bool:
    PipeRevision.objects.filter(id=revision.id).update(state=State.RAMPING)
    return adopt_live_spec(revision=revision)
