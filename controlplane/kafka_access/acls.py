"""ACLs as data: what each role of Penstock, and a tenant's consumers, may do on Kafka. Pure.

Names of topics begin with `penstock.` and name the cell before the purpose, so roles get prefixes instead of an ACL per
cell; a cell that the Autoscaler adds needs none. A role that only writes is kept from reading, and from writing where
its prefix is too wide, by denials, which Kafka applies before all permissions.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from dataplane.names import CONTROL_TOPIC, HEARTBEAT_TOPIC, LOOKUP_TOPIC, OPERATIONAL_TOPIC, OWN_PREFIX, output_topic

KafkaRole = Literal["ingest", "cells", "control", "web", "tables"]
KafkaOperation = Literal["read", "write", "create", "delete", "alter", "alter_configs", "describe", "describe_configs"]
PREFIX: Final = OWN_PREFIX
OUTPUT_PREFIX: Final = f"{PREFIX}out."
OFFSETS_TOPIC: Final = "__consumer_offsets"
FEED_GROUPS: Final = f"{PREFIX}pipe_"  # of sources of type table and penstock, which name their pipe
USER_PREFIX: Final = "penstock-"  # of the principals of roles
CUSTOMER_PREFIX: Final = "customer-"  # of the principals of tenants
ROLES: Final[Mapping[KafkaRole, str]] = MappingProxyType(
    {
        "ingest": "ingest replicas",
        "cells": "lanes and streaming queries of cells, and the keeper",
        "control": "worker, beat and Observer, and commands of manage.py",
        "web": "pages and API",
        "tables": "table queries",
    }
)


class Acl(Struct, frozen=True, order=True):
    """One rule. A permission to read or write includes that to describe."""

    user: str
    resource: Literal["topic", "group"]
    name: str
    operation: KafkaOperation
    prefixed: bool = False
    denied: bool = False

    def __str__(self) -> str:
        effect = "may not" if self.denied else "may"
        return f"{self.user} {effect} {self.operation} {self.resource} {self.name}{'*' if self.prefixed else ''}"


def role_user(role: KafkaRole, suffix: str = "") -> str:
    """Return the user name of a role; the suffix is that of a second user, while passwords are rotated."""
    return f"{USER_PREFIX}{role}{suffix}"


def role_acls(role: KafkaRole, suffix: str = "") -> list[Acl]:
    """Return the ACLs of a role's user."""
    user = role_user(role, suffix)
    match role:
        case "ingest":
            return [
                Acl(user, "topic", PREFIX, "write", prefixed=True),
                Acl(user, "topic", OUTPUT_PREFIX, "write", prefixed=True, denied=True),
                Acl(user, "topic", CONTROL_TOPIC, "write", denied=True),
                Acl(user, "topic", LOOKUP_TOPIC, "write", denied=True),
                Acl(user, "topic", OPERATIONAL_TOPIC, "write", denied=True),
                *_reads(user, topics=(CONTROL_TOPIC, HEARTBEAT_TOPIC, LOOKUP_TOPIC, OPERATIONAL_TOPIC)),
                *_reads(user, groups=("penstock-control-reader", "penstock-peer-reader")),
                *_prefixed(user, "group", FEED_GROUPS, ("read",)),
            ]
        case "cells":
            return [
                *_prefixed(user, "topic", PREFIX, ("read", "write")),
                *_prefixed(user, "group", "penstock", ("read",)),
                *_prefixed(user, "group", "spark-kafka-", ("read",)),  # Spark's own consumers
            ]
        case "control":
            operations: Sequence[KafkaOperation]
            operations = ("read", "write", "create", "delete", "alter", "alter_configs", "describe_configs")
            return [
                *_prefixed(user, "topic", PREFIX, operations),
                Acl(user, "topic", OFFSETS_TOPIC, "describe"),  # the Observer checks its replicas
                *_prefixed(user, "group", "penstock", ("read",)),
            ]
        case "web":
            return [
                *_prefixed(user, "topic", PREFIX, ("read",)),
                *_reads(user, groups=("penstock.show", "penstock.tail")),
            ]
        case "tables":
            return [
                *_reads(user, topics=(CONTROL_TOPIC, LOOKUP_TOPIC)),
                Acl(user, "topic", LOOKUP_TOPIC, "write"),  # repeats rows of which compaction would keep an older one
                *_reads(user, groups=("penstock-control-reader", "penstock-lookup-keeper")),
            ]


def customer_user(tenant: str) -> str:
    """Return the user name of a tenant's consumers."""
    return f"{CUSTOMER_PREFIX}{tenant}"


def customer_groups(tenant: str) -> str:
    """Return the prefix of a tenant's consumer groups; the dot keeps it apart from a longer id."""
    return f"{tenant}."


def customer_acls(tenant: str, pipes: Iterable[str]) -> list[Acl]:
    """Return the ACLs of a tenant: it reads the output topics of its pipes, with groups of its own, and writes nothing.

    pipes: its pipes with destinations of type `topic`; a further topic of such a pipe needs no further ACL
    """
    user = customer_user(tenant)
    topics = [Acl(user, "topic", output_topic(pipe, ""), "read", prefixed=True) for pipe in sorted(pipes)]
    return [*topics, Acl(user, "group", customer_groups(tenant), "read", prefixed=True)]


def _reads(user: str, *, topics: Iterable[str] = (), groups: Iterable[str] = ()) -> list[Acl]:
    return [
        *(Acl(user, "topic", name, "read") for name in topics),
        *(Acl(user, "group", name, "read") for name in groups),
    ]


def _prefixed(user: str, resource: Literal["topic", "group"], name: str, may: Iterable[KafkaOperation]) -> list[Acl]:
    return [Acl(user, resource, name, operation, prefixed=True) for operation in may]
