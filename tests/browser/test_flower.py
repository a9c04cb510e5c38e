"""Flower in headless Chromium while a job runs: workers and tasks by name, and nothing without the password."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.browser.chromium import see_in_chromium
from tests.browser.flower import PASSWORD, USER, Flower, running_flower
from tests.redis_server import RedisServer
from tests.workers.fleet import WAIT, TestFleet, wait_until

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("prefix", ["", "fleet/flower"])
def test_a_running_job_is_seen_and_only_with_the_password(prefix: str, tmp_path: Path) -> None:
    with RedisServer() as server, running_flower(server, tmp_path, prefix) as flower:
        fleet = TestFleet(tmp_path, server)
        try:
            fleet.hold("mid-render:0")  # or the job might be done before it was looked at
            fleet.start("first", odd=True)
            wait_until(lambda: "first@test" in flower.get("workers?json=1")[1], WAIT, flower.log.read_text)
            job = fleet.client().submit(
                ROOT / "samples" / "portrait.png", ROOT / "samples" / "voice.wav", preset="preview", frame="crop"
            )
            fleet.wait_held("mid-render:0")

            workers = seen(flower, "workers", tmp_path / "workers.png", "first@test")
            assert "first@test" in workers
            assert "Online" in workers
            tasks = seen(flower, "tasks", tmp_path / "tasks.png", "talkreel.motion")
            for expected in ("talkreel.sound", "talkreel.motion", f"job {job.id}", "first@test"):
                assert expected in tasks
            rendering = seen(flower, f"task/{job.id}.render-0.1", tmp_path / "task.png", "talkreel.render")
            assert f"job {job.id}, render 0" in rendering
            assert job.state == "running"
            job.cancel()

            for path in ("", "workers", "tasks", "api/workers", "api/tasks", "metrics", "broker"):
                assert flower.get(path)[0] == 200, path
                for login in (None, f"{USER}:wrong", f"nobody:{PASSWORD}"):
                    code, text = flower.get(path, login=login)
                    assert code == 401, (path, login)
                    assert job.id not in text
                    assert "first@test" not in text
        finally:
            fleet.close()


def seen(flower: Flower, path: str, picture: Path, text: str) -> str:
    """What a page says once it holds this text, with a screenshot beside it."""
    scheme, _, rest = flower.address.partition("://")
    login = f"{quote(USER, safe='')}:{quote(PASSWORD, safe='')}"
    page = see_in_chromium(f"{scheme}://{login}@{rest}{path}", text, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    return re.sub(r"\s+", " ", page)
