"""The rows of which there is exactly one."""

from django.db import migrations


def make_rows(apps, schema_editor):
    apps.get_model("fleet", "Freeze").objects.get_or_create(pk=1)
    apps.get_model("fleet", "TickMark").objects.get_or_create(pk=1)


class Migration(migrations.Migration):
    dependencies = [("fleet", "0001_initial")]
    operations = [migrations.RunPython(make_rows, migrations.RunPython.noop)]
