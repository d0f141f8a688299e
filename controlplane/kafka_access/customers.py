"""A tenant's access to its own `topic` destinations: a principal, its ACLs, and a limit of what it reads per second."""

import secrets
from collections.abc import Mapping
from typing import Final

from django.conf import settings
from msgspec import Struct

from controlplane.kafka import kafka_clients
from controlplane.kafka_access.acls import customer_acls, customer_groups, customer_user
from controlplane.kafka_access.apply import MECHANISM, KafkaAccess
from controlplane.kafka_access.quotas import set_consume_quota
from dataplane.kafka_settings import kafka_settings
from dataplane.names import output_topic
from mgmt.models import Destination, Tenant

BYTES_PER_S: Final = 10 * 1024 * 1024  # of a tenant's consumers together, on each broker


class CustomerAccess(Struct, frozen=True):
    """Everything that a tenant needs to configure a consumer; `password` is empty if it was not changed."""

    tenant: str
    username: str
    password: str
    mechanism: str
    group_prefix: str
    topics: list[str]


def grant_access(*, tenant: Tenant, new_password: bool, bytes_per_s: int) -> CustomerAccess:
    """Create or update a tenant's principal; run it again after the tenant has got its first topic of another pipe.

    The password is shown once and stored nowhere but in Kafka, as a salted hash. Raises KafkaException,
    QuotaNotSetError. The password is set last: until then nobody can sign in without a quota.
    """
    topics = output_topics(tenant)
    user, access = customer_user(tenant.id), KafkaAccess(kafka_clients(settings.PENSTOCK_KAFKA).admin())
    set_consume_quota(settings.PENSTOCK_KAFKA, kafka_settings(), user, bytes_per_s)
    access.set_acls(user, customer_acls(tenant.id, topics))
    password = secrets.token_urlsafe(32) if new_password else ""
    if password:
        access.set_password(user, password)
    names = sorted(name for of_pipe in topics.values() for name in of_pipe)
    return CustomerAccess(tenant.id, user, password, MECHANISM, customer_groups(tenant.id), names)


def revoke_access(*, tenant: Tenant) -> None:
    """Remove a tenant's principal, its ACLs and its quota. Raises KafkaException, QuotaNotSetError."""
    user = customer_user(tenant.id)
    KafkaAccess(kafka_clients(settings.PENSTOCK_KAFKA).admin()).remove(user)
    set_consume_quota(settings.PENSTOCK_KAFKA, kafka_settings(), user, None)


def output_topics(tenant: Tenant) -> Mapping[str, list[str]]:
    """Return the topics of a tenant's `topic` destinations that were not removed, by the id of their pipe."""
    rows = Destination.objects.filter(pipe__tenant=tenant, config__type="topic")
    found: dict[str, list[str]] = {}
    for pipe, name in rows.exclude(state=Destination.State.REMOVED).values_list("pipe_id", "name"):
        found.setdefault(pipe, []).append(output_topic(pipe, name))
    return found
