"""Row-level security: a tenant's rows are visible only in the scope of the tenant (mgmt.tenancy.row_scope)."""

from django.db import migrations

from mgmt.tenancy.row_policies import by_tenant, through, without_policy

BY_TENANT = [
    "mgmt_alertchannel",
    "mgmt_apitoken",
    "mgmt_auditentry",
    "mgmt_cataloguelink",
    "mgmt_destinationtest",
    "mgmt_invitation",
    "mgmt_lookuptable",
    "mgmt_membership",
    "mgmt_pipe",
    "mgmt_registrydefault",
    "mgmt_replay",
    "mgmt_schematext",
    "mgmt_serviceaccount",
    "mgmt_shadow",
    "mgmt_subject",
    "mgmt_tenantquota",
]
BY_PIPE = [
    "mgmt_admission",
    "mgmt_alert",
    "mgmt_attemptcount",
    "mgmt_backfill",
    "mgmt_deadletter",
    "mgmt_destination",
    "mgmt_fieldhour",
    "mgmt_fieldsample",
    "mgmt_finding",
    "mgmt_heldmessage",
    "mgmt_ignoredfield",
    "mgmt_lanesignal",
    "mgmt_move",
    "mgmt_numberstate",
    "mgmt_offsetset",
    "mgmt_partitionwatch",
    "mgmt_patternhour",
    "mgmt_piperevision",
    "mgmt_piperollup",
    "mgmt_rejection",
    "mgmt_relocation",
    "mgmt_seal",
    "mgmt_sequencebreakrow",
    "mgmt_source",
    "mgmt_usage",
]
# Accounts of the ledger: a pipe or a replay.
BY_ACCOUNT = ["mgmt_attempt", "mgmt_factrow", "mgmt_lagrow", "mgmt_latecount", "mgmt_reach"]
BY_PARENT = [
    ("mgmt_apikey", "source_id", "mgmt_source", "id"),
    ("mgmt_destinationhealth", "destination_id", "mgmt_destination", "id"),
    ("mgmt_eventtype", "source_id", "mgmt_source", "id"),
    ("mgmt_lookuprow", "table_id", "mgmt_lookuptable", "id"),
    ("mgmt_notice", "alert_id", "mgmt_alert", "id"),
    ("mgmt_ramp", "revision_id", "mgmt_piperevision", "id"),
    ("mgmt_rampstep", "ramp_id", "mgmt_piperevision", "id"),
    ("mgmt_rejectionminute", "rejection_id", "mgmt_rejection", "id"),
    ("mgmt_sourceeventtypes", "source_id", "mgmt_source", "id"),
    ("mgmt_sourceschema", "source_id", "mgmt_source", "id"),
    ("mgmt_subjectversion", "subject_id", "mgmt_subject", "id"),
    ("mgmt_versionhour", "source_id", "mgmt_source", "id"),
]
PIPE, REPLAY = ("pipe_id", "mgmt_pipe", "id"), ("pipe_id", "mgmt_replay", "id")

POLICIES = [
    ("mgmt_tenant", by_tenant("mgmt_tenant", "id")),
    *((table, by_tenant(table)) for table in BY_TENANT),
    *((table, through(table, PIPE)) for table in BY_PIPE),
    *((table, through(table, PIPE, REPLAY)) for table in BY_ACCOUNT),
    *((table, through(table, (column, parent, key))) for table, column, parent, key in BY_PARENT),
    # Changes of a cell concern the tenants with a pipe there. Other entries without a pipe are for staff.
    (
        "mgmt_controlaction",
        through(
            "mgmt_controlaction",
            PIPE,
            more="pipe_id IS NULL AND "
            "EXISTS (SELECT FROM mgmt_pipe AS neighbour WHERE neighbour.cell_id = mgmt_controlaction.cell_id)",
        ),
    ),
]


class Migration(migrations.Migration):
    # Each table for itself: a lock on all of them at once could deadlock with the Observer. Safe to run again.
    atomic = False
    dependencies = [("mgmt", "0063_idempotent_responses")]
    # Behind a long reader, such as a dump, a waiting ALTER TABLE would block the table for everyone.
    operations = [
        migrations.RunSQL("SET lock_timeout = '5s'", "RESET lock_timeout"),
        *(migrations.RunSQL(policy, without_policy(table)) for table, policy in POLICIES),
        migrations.RunSQL("RESET lock_timeout", "SET lock_timeout = '5s'"),
    ]
