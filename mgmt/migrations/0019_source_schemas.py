"""Schemas of sources. The database itself refuses to change what was registered; rows go only with the whole table."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

FORWARD = """
CREATE FUNCTION mgmt_schema_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'schema_is_immutable: register the next version instead' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER schema_is_immutable BEFORE UPDATE OR DELETE ON mgmt_sourceschema
    FOR EACH ROW EXECUTE FUNCTION mgmt_schema_is_immutable();
"""
BACKWARD = """
DROP TRIGGER schema_is_immutable ON mgmt_sourceschema;
DROP FUNCTION mgmt_schema_is_immutable();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('mgmt', '0018_ticks'),
    ]

    operations = [
        migrations.CreateModel(
            name='SourceSchema',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('text', models.TextField(help_text='Checked by dataplane.spec.schema before it is stored.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='schemas', to='mgmt.source')),
            ],
            options={
                'ordering': ['source', '-number'],
                'constraints': [models.UniqueConstraint(fields=('source', 'number'), name='schema_number_once_per_source')],
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
