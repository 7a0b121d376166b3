"""`manage.py prune`: apply the retention now; it also runs by itself each night."""

from django.core.management.base import BaseCommand
from django.utils import timezone

from scheduler.engine.prune import prune


class Command(BaseCommand):
    """Delete what is over and older than its retention."""

    help = "Delete ended tasks, history and audit entries that are older than their retention."

    def handle(self, *args: object, **options: object) -> None:  # noqa: ARG002
        """Prune, and say of each part how much went."""
        total = prune(now=timezone.now(), tell=self._tell)
        self.stdout.write(f"{total} rows deleted")

    def _tell(self, name: str, count: int) -> None:
        self.stdout.write(f"{name}: {count}")
        self.stdout.flush()
