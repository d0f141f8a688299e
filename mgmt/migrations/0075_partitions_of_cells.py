from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mgmt', '0074_ingest_releases'),
    ]

    operations = [
        migrations.AddField(
            model_name='cell',
            name='partitions',
            field=models.PositiveSmallIntegerField(blank=True, help_text='Partitions of its topics; empty: PENSTOCK_PARTITIONS when they are created.', null=True),
        ),
    ]
