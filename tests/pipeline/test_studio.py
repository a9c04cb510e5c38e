"""The studio: one pack's models, opened once."""

from __future__ import annotations

from pipeline import RuntimeOptions, open_pack
from pipeline.runtime.spent import Spent
from pipeline.studio import Studio


def test_warming_up_opens_and_runs_what_is_wanted() -> None:
    studio = Studio(open_pack(), RuntimeOptions(threads=1))
    studio.warm_up(motion=True, frames=False)
    assert {name for name, _ in studio.models.opened} == {"speech_encoder", "denoiser"}
    studio.warm_up(motion=False, frames=True)
    opened = {name for name, _ in studio.models.opened}
    assert opened == {"speech_encoder", "denoiser", "portrait", "appearance", "generator_512"}
    assert all(studio.models.get(name).spent() == Spent() for name in opened)  # of the stages to come
