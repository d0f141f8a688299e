"""Writes ACLs and SCRAM passwords to Kafka, for commands: the client's principal needs `ALTER` on the cluster."""

from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from controlplane.kafka import REQUEST_S
from controlplane.kafka_access.acls import ROLES, Acl, role_acls, role_user

MECHANISM: Final = "SCRAM-SHA-512"
ITERATIONS: Final = 8_192
_ANY_HOST: Final = "*"


class KafkaAccess:
    """ACLs and passwords of one cluster. Every method is safe to run twice."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def set_role_acls(self, suffix: str = "") -> None:
        """Give the user of each role the ACLs of the role. Raises KafkaException."""
        for role in ROLES:
            self.set_acls(role_user(role, suffix), role_acls(role, suffix))

    def set_acls(self, user: str, acls: Iterable[Acl]) -> None:
        """Give a user these ACLs and no others. Raises KafkaException.

        New ones are added before old ones are removed, so that nothing that is still allowed is refused in between.
        """
        wanted = {_binding(acl) for acl in acls}
        found = self._bindings(user)
        if missing := list(wanted - found):
            for future in self._admin.create_acls(missing, request_timeout=REQUEST_S).values():
                future.result()
        self._delete(found - wanted)

    def set_password(self, user: str, password: str) -> None:
        """Store a user's SCRAM password; clients that are connected stay connected. Raises KafkaException."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
        self._alter(UserScramCredentialUpsertion(user, info, password.encode()))

    def remove(self, user: str) -> None:
        """Remove a user's ACLs and password; Kafka refuses its requests at once. Raises KafkaException."""
        self._delete(self._bindings(user))
        try:
            self._alter(UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512))
        except KafkaException as exc:
            if exc.args[0].code() != KafkaError.RESOURCE_NOT_FOUND:
                raise

    def _bindings(self, user: str) -> "set[AclBinding]":
        every = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            _principal(user),
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        return set(self._admin.describe_acls(every, request_timeout=REQUEST_S).result())

    def _delete(self, bindings: "set[AclBinding]") -> None:
        filters = [AclBindingFilter(*_fields(binding)) for binding in bindings]
        if filters:
            for future in self._admin.delete_acls(filters, request_timeout=REQUEST_S).values():
                future.result()

    def _alter(self, change: Any) -> None:
        for future in self._admin.alter_user_scram_credentials([change], request_timeout=REQUEST_S).values():
            future.result()


def _binding(acl: Acl) -> "AclBinding":
    return AclBinding(
        ResourceType[acl.resource.upper()],
        acl.name,
        ResourcePatternType.PREFIXED if acl.prefixed else ResourcePatternType.LITERAL,
        _principal(acl.user),
        _ANY_HOST,
        AclOperation[acl.operation.upper()],
        AclPermissionType.DENY if acl.denied else AclPermissionType.ALLOW,
    )


def _fields(binding: "AclBinding") -> tuple[Any, ...]:
    return (
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


def _principal(user: str) -> str:
    return f"User:{user}"
