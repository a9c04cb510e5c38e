"""The fleet: Celery tasks around the stages of `pipeline`. Imports `pipeline`, never the other way."""
