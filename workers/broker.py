"""What lies in the broker: the messages that wait in the queues, and those that workers have and have not
acknowledged. Kombu's own layout in Redis, read only but for `discard`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .config import PRIORITIES, QUEUES
from .connections import RedisServer

UNACKED, UNACKED_INDEX = "unacked", "unacked_index"
"""Kombu's hash of messages by delivery tag, and its sorted set of tags by the time of delivery."""


def queue_lists(queue: str) -> list[str]:
    """Redis lists of a queue, one a priority."""
    return [queue if value == 0 else f"{queue}:{value}" for value in sorted(PRIORITIES.values())]


@dataclass(frozen=True)
class Delivered:
    """A message that a worker has: the task's id and kombu's tag."""

    task: str
    tag: str


class Broker:
    """Messages of one broker. Every method raises FleetUnreachableError."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.redis: Any = server.client()

    def ping(self) -> None:
        """Whether it answers and lets us in."""
        with self.server.errors():
            self.redis.ping()

    def lengths(self) -> dict[str, int]:
        """Messages that wait, by queue."""
        with self.server.errors(), self.redis.pipeline(transaction=False) as pipe:
            for queue in QUEUES:
                for name in queue_lists(queue):
                    pipe.llen(name)
            found = iter(pipe.execute())
            return {queue: sum(next(found) for _ in queue_lists(queue)) for queue in QUEUES}

    def waiting(self, queue: str) -> set[str]:
        """Task ids of the messages that wait in a queue."""
        with self.server.errors():
            texts = [text for name in queue_lists(queue) for text in self.redis.lrange(name, 0, -1)]
        return {json.loads(text)["headers"]["id"] for text in texts}

    def delivered(self) -> list[Delivered]:
        """Messages of ours that workers have and have not acknowledged."""
        with self.server.errors():
            found = self.redis.hgetall(UNACKED)
        messages = ((tag.decode(), json.loads(text)[0]["headers"]) for tag, text in found.items())
        ours = ((tag, h) for tag, h in messages if str(h.get("task", "")).startswith("talkreel."))
        return [Delivered(h["id"], tag) for tag, h in ours if h["id"].count(".") >= 2]  # others sent a task by hand

    def discard(self, messages: list[Delivered]) -> None:
        """Forget delivered messages, as if they had been acknowledged."""
        tags = [message.tag for message in messages]
        if tags:
            # No transaction: a full server would refuse it. What is cut short is found and discarded again.
            with self.server.errors(), self.redis.pipeline(transaction=False) as pipe:
                pipe.zrem(UNACKED_INDEX, *tags)
                pipe.hdel(UNACKED, *tags)
                pipe.execute()
