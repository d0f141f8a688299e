from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mgmt', '0056_api_tokens'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='expires_at',
            field=models.DateTimeField(help_text='Ingest refuses it from then on; null: never.', null=True),
        ),
    ]
