import shop.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Order',
            fields=[
                ('id', models.BigIntegerField(default=shop.ids.next_order, editable=False, primary_key=True, serialize=False)),
                ('what', models.CharField(max_length=200)),
            ],
        ),
    ]
