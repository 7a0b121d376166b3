"""The groups viewer, operator, approver and fleet-admin, from the table of roles."""

from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.db import migrations

from fleet.rules.roles import ROLES


def make_roles(apps, schema_editor):
    using = schema_editor.connection.alias
    # Permissions are usually made after the last migration; the groups need them now.
    for label in ("scheduler", "fleet"):
        create_permissions(installed.get_app_config(label), verbosity=0, using=using)
    permission = apps.get_model("auth", "Permission").objects.using(using)
    group = apps.get_model("auth", "Group").objects.using(using)
    known = {
        f"{row.content_type.app_label}.{row.codename}": row
        for row in permission.select_related("content_type")
    }
    for name, rights in ROLES.items():
        role, _ = group.get_or_create(name=name)
        role.permissions.set([known[right] for right in sorted(rights)])


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0003_wakes_and_handouts"),
        ("scheduler", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(make_roles, migrations.RunPython.noop)]
