"""`manage.py kafka_access`: the topics of a tenant, and requests that are refused before Kafka is asked."""

import io

import pytest
from django.core.management import CommandError, call_command

from controlplane.kafka_access.acls import ROLES
from controlplane.kafka_access.customers import output_topics
from dataplane.names import output_topic
from mgmt.models import Destination, Pipe, Tenant


@pytest.fixture
def feeds(pipe: Pipe) -> None:
    """Give the pipe two destinations of type `topic`, one of which was removed, and one of type `http`."""
    topic, http = {"type": "topic", "partitions": 1}, {"type": "http", "url": "https://example.com"}
    Destination.objects.create(pipe=pipe, name="feed", config=topic)
    Destination.objects.create(pipe=pipe, name="old", config=topic, state=Destination.State.REMOVED)
    Destination.objects.create(pipe=pipe, name="web", config=http)


@pytest.mark.usefixtures("feeds")
def test_tenants_topics_are_those_of_its_live_topic_destinations(pipe: Pipe, tenant: Tenant):
    assert output_topics(tenant) == {pipe.id: [output_topic(pipe.id, "feed")]}
    assert output_topics(Tenant.objects.create(name="Another")) == {}


def test_roles_are_printed_without_a_broker():
    out = io.StringIO()
    call_command("kafka_access", "roles", stdout=out)
    assert "penstock-ingest may write topic penstock.*\n" in out.getvalue()
    assert "penstock-ingest may not write topic penstock.control\n" in out.getvalue()


def test_second_users_have_the_rights_of_the_first():
    first, second = io.StringIO(), io.StringIO()
    call_command("kafka_access", "roles", stdout=first)
    call_command("kafka_access", "roles", "--suffix=-2", stdout=second)
    rules = [line for line in second.getvalue().splitlines() if not line.startswith("#")]
    assert {line.split()[0] for line in rules} == {f"penstock-{role}-2" for role in ROLES}
    assert second.getvalue().replace("-2 may", " may") == first.getvalue()


@pytest.mark.django_db
def test_unknown_tenant_is_refused():
    with pytest.raises(CommandError, match="does not exist"):
        call_command("kafka_access", "customer", "--tenant", "nobody")


def test_name_of_another_tenant_does_not_hide_an_id(tenant: Tenant):
    """The command gets as far as its check of the limit."""
    Tenant.objects.create(name=tenant.id)
    with pytest.raises(CommandError, match="--bytes-per-s"):
        call_command("kafka_access", "customer", "--tenant", tenant.id, "--bytes-per-s", "0")


def test_limit_below_one_is_refused(tenant: Tenant):
    with pytest.raises(CommandError, match="--bytes-per-s: needs 1 or more"):
        call_command("kafka_access", "customer", "--tenant", tenant.id, "--bytes-per-s", "0")


def test_access_without_a_quota_is_not_granted(tenant: Tenant, monkeypatch: pytest.MonkeyPatch):
    """Without Spark's jars the quota cannot be set, and nothing else is done."""
    monkeypatch.delenv("PENSTOCK_SPARK_JARS", raising=False)
    with pytest.raises(CommandError, match="PENSTOCK_SPARK_JARS"):
        call_command("kafka_access", "customer", "--tenant", tenant.id)
