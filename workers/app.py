"""The Celery application. `celery -A workers.app worker` runs one worker; `talkreel worker` does it with
the fleet's defaults."""

from __future__ import annotations

from celery import Celery

from .config import settings
from .connections import Connections


def create_app(connections: Connections) -> Celery:
    """An application for these servers."""
    app = Celery("talkreel")
    app.conf.update(settings())
    app.conf.update(connections.celery_settings())
    app.conf.imports = ("workers.tasks", "workers.worker", "workers.heartbeat")
    return app


app = create_app(Connections.read())
