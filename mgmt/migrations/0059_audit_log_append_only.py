"""Entries of the audit log are append-only: the database itself refuses to change or delete one.

Two exceptions. An entry past the retention is deleted in a transaction that names the time, as
mgmt.audit.services.delete_expired does. The reference to an account becomes null when the account is deleted; the
actor's name stays.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION mgmt_audit_entry_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < nullif(current_setting('penstock.audit_before', true), '')::timestamptz THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.user_id IS NULL AND to_jsonb(NEW) - 'user_id' = to_jsonb(OLD) - 'user_id' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'audit_entry_is_append_only: an entry is never changed, nor deleted before its retention is over'
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER audit_entry_is_append_only BEFORE UPDATE OR DELETE ON mgmt_auditentry
    FOR EACH ROW EXECUTE FUNCTION mgmt_audit_entry_is_append_only();
"""
BACKWARD = """
DROP TRIGGER audit_entry_is_append_only ON mgmt_auditentry;
DROP FUNCTION mgmt_audit_entry_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0058_audit_log")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
