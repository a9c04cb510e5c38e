"""A pull may be killed anywhere: never is half a pack seen, and the next pull ends what was begun."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.hub_server import HubServer
from tests.pipeline.packs.tiny_pack import FILES, TOTAL, User, tiny_entry


def drive(user: User, manifest: str, what: str) -> Any:
    command = [sys.executable, "-m", "tests.pipeline.packs.kill_driver", manifest, what]
    done = subprocess.run(
        command, env=user.env, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_before_each_step_that_touches_the_disk(tmp_path: Path) -> None:
    folder = tmp_path / "stick"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "manifest.json").write_text(json.dumps(tiny_entry(origin=None)))
    with HubServer() as hub:
        found = drive(User(tmp_path, hub), str(folder), "steps")
    assert found["steps"] > 30
    assert found["most"] == TOTAL


def test_what_had_come_when_it_was_killed_is_not_fetched_again(tmp_path: Path) -> None:
    """Eight kills at seeded bytes: to the byte, the next pull fetches the rest."""
    with HubServer(redirect_above=TOTAL) as hub:
        hub.add_at("/mine/manifest.json", json.dumps(tiny_entry(origin=None)).encode())
        for name, data in FILES.items():
            hub.add_at(f"/mine/{name}", data)
        kills = drive(User(tmp_path, hub), f"{hub.url}/mine", "bytes")
    assert [had_come + fetched for had_come, fetched in kills] == [TOTAL] * 8
    assert len({had_come for had_come, _ in kills}) > 3
