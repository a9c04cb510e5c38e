"""Flower's configuration: nobody sees jobs without a password.

    celery -A workers.app flower --conf=deploy/flower/config.py

FLOWER_USER         default "operator"
FLOWER_PASSWORD     or FLOWER_PASSWORD_FILE: a file that holds it. Without one Flower does not start.
FLOWER_URL_PREFIX   path that a proxy serves Flower under, such as "flower"
FLOWER_READ_ONLY    default true: nothing can be changed from the page

The broker is the fleet's (TALKREEL_BROKER_URL and its relatives), TLS included.
"""

import os
from pathlib import Path

from flower.views.monitor import Metrics
from tornado.web import authenticated

from workers.app import app


def _password() -> str:
    given, path = os.environ.get("FLOWER_PASSWORD", ""), os.environ.get("FLOWER_PASSWORD_FILE", "")
    if path and not given:
        try:
            given = Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SystemExit(f"FLOWER_PASSWORD_FILE {path} cannot be read: {error}") from None
    if not given:
        raise SystemExit("Flower does not start without a password: give FLOWER_PASSWORD or FLOWER_PASSWORD_FILE")
    return given


basic_auth = [f"{os.environ.get('FLOWER_USER') or 'operator'}:{_password()}"]

# Flower leaves its own metrics open, and they name workers and tasks.
Metrics.get = authenticated(Metrics.get)

# Flower asks workers that do not send events to do so.
enable_events = True

# A single task revoked here would leave its job waiting; `talkreel cancel` ends the job and frees what it holds.
read_only = os.environ.get("FLOWER_READ_ONLY", "true").lower() not in ("false", "0", "no")

# Flower asks all workers several things at a time, each with a connection for the answers and one for the question:
# in a worker's small pool they would wait for each other for ever.
app.conf.broker_pool_limit = 64

tasks_columns = "name,args,state,worker,received,runtime,uuid"
max_tasks = 10_000
purge_offline_workers = 300
