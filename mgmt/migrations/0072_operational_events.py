import django.db.models.deletion
import django.utils.timezone
import functools
import mgmt.ids
from django.db import migrations, models

from mgmt.tenancy.row_policies import by_tenant, without_policy


class Migration(migrations.Migration):

    dependencies = [
        ('mgmt', '0071_channel_tests'),
    ]

    operations = [
        migrations.CreateModel(
            name='OperationalEvent',
            fields=[
                ('id', models.CharField(default=functools.partial(mgmt.ids.new_id, *('evt',), **{}), editable=False, max_length=32, primary_key=True, serialize=False)),
                ('pipe_name', models.CharField(help_text='Name of the pipe at that time.', max_length=80)),
                ('type', models.CharField(max_length=60)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('data', models.JSONField(default=dict)),
            ],
        ),
        migrations.AddField(
            model_name='piperevision',
            name='has_penstock_source',
            field=models.BooleanField(db_default=False, default=False, help_text='True if a source of the spec receives operational events.'),
        ),
        migrations.AddIndex(
            model_name='piperevision',
            index=models.Index(condition=models.Q(('has_penstock_source', True)), fields=['pipe'], name='revisions_receiving_events'),
        ),
        migrations.AddField(
            model_name='operationalevent',
            name='pipe',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='mgmt.pipe'),
        ),
        migrations.AddField(
            model_name='operationalevent',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='mgmt.tenant'),
        ),
        migrations.AddIndex(
            model_name='operationalevent',
            index=models.Index(fields=['at', 'id'], name='operational_events_in_order'),
        ),
        migrations.RunSQL(by_tenant("mgmt_operationalevent"), without_policy("mgmt_operationalevent")),
    ]
