"""The admin pages of django-celery-beat are not served: decision 0015."""

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.test import Client
from django_celery_beat import models

from tests.kanade.routes import routes

MODELS = ("PeriodicTask", "CrontabSchedule", "IntervalSchedule", "ClockedSchedule", "SolarSchedule")


@pytest.mark.parametrize("name", MODELS)
def test_none_of_its_models_has_pages(name: str) -> None:
    assert not site.is_registered(getattr(models, name))


def test_no_address_leads_to_it() -> None:
    assert [route for route in routes() if "celery_beat" in route] == []


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["", "periodictask/", "crontabschedule/add/"])
def test_not_even_a_superuser_finds_them(path: str, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))

    assert client.get(f"/admin/django_celery_beat/{path}").status_code == 404
