import django.db.models.deletion
import functools
import mgmt.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mgmt', '0049_rejections'),
    ]

    operations = [
        migrations.CreateModel(
            name='CatalogueLink',
            fields=[
                ('id', models.CharField(default=functools.partial(mgmt.ids.new_id, *('link',), **{}), editable=False, max_length=32, primary_key=True, serialize=False)),
                ('label', models.CharField(help_text='For whom it is.', max_length=80)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(null=True)),
                ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='catalogue_links', to='mgmt.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', 'created_at'], name='catalogue_links_of_tenant')],
            },
        ),
    ]
