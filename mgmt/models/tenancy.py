"""Who uses Penstock: users, tenants, and what a user may do in a tenant."""

from django.contrib.auth.models import AbstractUser
from django.db import models

from mgmt.models.ids import id_maker


class User(AbstractUser):
    """A person. Our own class from the first migration, because Django cannot swap it in later."""


class Tenant(models.Model):
    """A customer. Every row a customer owns hangs on one tenant."""

    id = models.CharField(primary_key=True, max_length=32, default=id_maker("ten"), editable=False)
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField(auto_now_add=True)
    mask_salt = models.TextField(blank=True, editable=False, help_text="Fernet token; keys the masks that hash.")
    members = models.ManyToManyField(User, through="Membership", related_name="tenants")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A user's role in a tenant. Each role may do all that the one before it may."""

    class Role(models.TextChoices):
        VIEWER = "viewer"  # sees
        OPERATOR = "operator"  # pauses, redrives, acknowledges
        EDITOR = "editor"  # makes pipes, publishes revisions, makes keys
        OWNER = "owner"  # members, closing pipes

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_per_user_and_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"
