"""A published revision means for ever what it meant: the database itself refuses to change what was published.

Only its state and the marks of its way move. Rows go only with the whole table.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION mgmt_revision_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'revision_is_immutable: a revision is never deleted' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (NEW.pipe_id, NEW.number, NEW.spec, NEW.author_id, NEW.created_at)
       IS DISTINCT FROM (OLD.pipe_id, OLD.number, OLD.spec, OLD.author_id, OLD.created_at) THEN
        RAISE EXCEPTION 'revision_is_immutable: publish a new revision instead' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER revision_is_immutable BEFORE UPDATE OR DELETE ON mgmt_piperevision
    FOR EACH ROW EXECUTE FUNCTION mgmt_revision_is_immutable();
"""
BACKWARD = """
DROP TRIGGER revision_is_immutable ON mgmt_piperevision;
DROP FUNCTION mgmt_revision_is_immutable();
"""


class Migration(migrations.Migration):
    dependencies = [("mgmt", "0002_observer_marks")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
