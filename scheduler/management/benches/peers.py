"""Other queues at their best settings, doing the same nothing: tasks a second, in this process.

They come with requirements-bench.txt; a benchmark leaves out what is not installed and says so.
"""

import asyncio
import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import connection

from scheduler.management.benches.measuring import seconds

Peer = Callable[[int, int], float]


def pgqueuer(tasks: int, batch: int) -> float:
    """Drain pgqueuer's queue over asyncpg, its fastest driver, `batch` at a time."""
    return asyncio.run(_pgqueuer(tasks, batch, _durability()))


async def _pgqueuer(tasks: int, batch: int, durability: str) -> float:
    import asyncpg  # noqa: PLC0415  # only where it is installed
    from pgqueuer import PgQueuer  # noqa: PLC0415
    from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver  # noqa: PLC0415
    from pgqueuer.domain.types import QueueExecutionMode  # noqa: PLC0415

    own = await asyncpg.connect(_dsn(), server_settings={"synchronous_commit": durability})
    try:
        queue = PgQueuer(AsyncpgDriver(own))
        assert queue.queries is not None
        if not await queue.queries.schema_is_installed():
            await queue.queries.install()

        @queue.entrypoint("noop")  # type: ignore[untyped-decorator]  # not installed here
        async def noop(_job: Any) -> None:
            pass

        await queue.queries.enqueue(["noop"] * tasks, [None] * tasks, [0] * tasks)
        await own.execute("VACUUM ANALYZE")
        clock = asyncio.get_running_loop().time
        began = clock()
        await queue.run(batch_size=batch, mode=QueueExecutionMode.drain)
        return tasks / (clock() - began)
    finally:
        await own.close()


def procrastinate(tasks: int, _batch: int) -> float:
    """Drain procrastinate's queue; it fetches one job at a time, ten of them at once."""
    return asyncio.run(_procrastinate(tasks, _durability()))


async def _procrastinate(tasks: int, durability: str) -> float:
    from procrastinate import App, PsycopgConnector  # noqa: PLC0415  # only where it is installed

    options = f"-c synchronous_commit={durability}"
    app = App(connector=PsycopgConnector(conninfo=_dsn(), kwargs={"options": options}))

    @app.task(name="noop")  # type: ignore[untyped-decorator]  # not installed for the checks
    async def noop() -> None:
        pass

    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        await noop.batch_defer_async(*({} for _ in range(tasks)))
        clock = asyncio.get_running_loop().time
        began = clock()
        await app.run_worker_async(wait=False, concurrency=10, install_signal_handlers=False)
        return tasks / (clock() - began)


def huey(tasks: int, _batch: int) -> float:
    """Take and run huey's tasks from its SQLite store one by one, as its consumer does."""
    from huey import SqliteHuey  # noqa: PLC0415  # only where it is installed

    with tempfile.TemporaryDirectory(prefix="kanade-bench-") as folder:
        store = SqliteHuey(filename=str(Path(folder) / "huey.sqlite3"), fsync=True, results=False)

        @store.task()  # type: ignore[untyped-decorator]  # not installed for the checks
        def noop() -> None:
            pass

        for _ in range(tasks):
            noop()

        def drain() -> None:
            while (task := store.dequeue()) is not None:
                store.execute(task)

        return tasks / seconds(drain)


# Per database: each peer with the packages it needs, how many tasks suffice, and its goal.
POSTGRES: dict[str, tuple[Peer, tuple[str, ...], int, float]] = {
    "pgqueuer": (pgqueuer, ("pgqueuer", "asyncpg"), 5_000, 1.0),
    "procrastinate": (procrastinate, ("procrastinate",), 1_000, 15.0),
}
SQLITE: dict[str, tuple[Peer, tuple[str, ...], int, float]] = {
    "huey": (huey, ("huey",), 1_000, 10.0)
}


def here() -> dict[str, tuple[Peer, tuple[str, ...], int, float]]:
    """Return the peers that work on this database."""
    return POSTGRES if connection.vendor == "postgresql" else SQLITE


def is_installed(packages: tuple[str, ...]) -> bool:
    """Whether all of them can be imported."""
    return all(importlib.util.find_spec(name) is not None for name in packages)


def _dsn() -> str:
    given = connection.settings_dict
    password = f":{given['PASSWORD']}" if given["PASSWORD"] else ""
    host, port = given["HOST"] or "127.0.0.1", given["PORT"] or 5432
    return f"postgresql://{given['USER']}{password}@{host}:{port}/{given['NAME']}"


def _durability() -> str:
    """Return this connection's synchronous_commit, so that both sides have the same."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        return str(cursor.fetchone()[0])
