"""The client: submits jobs and finds them again."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import uuid4

from pipeline.deadline import check_deadline
from pipeline.errors import SettingsError
from pipeline.packs.store import DEFAULT_PACK, open_pack
from pipeline.settings import Settings
from pipeline.stages.picture import probe_picture
from pipeline.stages.sound import probe_sound

from .app import create_app
from .broker import Broker
from .config import PRIORITIES
from .connections import Connections
from .errors import FleetFullError, FleetUnreachableError
from .fleet import JOB_LIFETIME, Fleet
from .followed_job import Event, Job
from .inputs import Source, named, read_input
from .keys import code_identity, input_key
from .order import Order

__all__ = ["Client", "Event", "Job"]


class Client:
    """One fleet, from a client's side.

    Args:
        url: the broker's address; None = from the environment (see `connections`).
    """

    def __init__(self, url: str | None = None, *, connections: Connections | None = None) -> None:
        self.connections = connections or Connections.read(url)
        self.fleet = Fleet(self.connections, create_app(self.connections))

    def submit(
        self,
        portrait: Source,
        audio: Source,
        *,
        pack: str = DEFAULT_PACK,
        priority: str = "normal",
        deadline: float | None = None,
        **settings: Any,
    ) -> Job:
        """Check the inputs (by their headers) and hand the job in.

        Args:
            portrait, audio: a path, bytes, or an open binary file.
            pack: name of a pack that the workers have. priority: "high", "normal" or "low".
            deadline: seconds from now in which the film must be done. Where they do not suffice for it as asked, the
            rate of key frames is lowered, then the preset; then the job ends. settings: of `pipeline.Settings`.

        Raises:
            InputError: inputs or settings cannot be used; nothing was queued.
            FleetUnreachableError: a Redis server does not answer. FleetFullError: one has no room for the inputs.
        """
        chosen = Settings.from_json({**Settings().to_json(), **settings})
        if priority not in PRIORITIES:
            raise SettingsError(f"priority {priority!r} is unknown; give one of: {', '.join(PRIORITIES)}")
        check_deadline(deadline)
        opened = open_pack(pack)
        opened.manifest.preset(chosen.preset)
        picture, picture_name = read_input(portrait)
        sound, sound_name = read_input(audio)
        probe_picture(named(picture, picture_name))
        probe_sound(named(sound, sound_name))
        Broker(self.connections.broker).ping()
        job, now = uuid4().hex[:16], self.fleet.jobs.now()
        order = Order(
            job=job,
            settings=chosen.to_json(),
            portrait=input_key(picture),
            audio=input_key(sound),
            portrait_name=picture_name,
            audio_name=sound_name,
            pack=pack,
            pack_identity=opened.identity,
            code=code_identity(),
            priority=priority,
            submitted=now,
            deadline=now + deadline if deadline else None,
        )
        self.fleet.store.put(order.portrait, picture, job=job, lifetime=JOB_LIFETIME)
        self.fleet.store.put(order.audio, sound, job=job, lifetime=JOB_LIFETIME)
        self.fleet.jobs.create(order)
        with suppress(FleetUnreachableError, FleetFullError):  # it is on the fleet: the supervisor sends the rest
            self.fleet.advance(job)
        return Job(self.fleet, job)

    def job(self, job: str) -> Job:
        """A job by its id. Raises JobNotFoundError."""
        self.fleet.jobs.order(job)
        return Job(self.fleet, job)

    def jobs(self) -> list[Job]:
        """All jobs that the fleet remembers, oldest first."""
        return [Job(self.fleet, job) for job in self.fleet.jobs.all()]
