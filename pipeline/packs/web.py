"""HTTP for packs, by huggingface_hub's session: its proxies, its offline mode, its endpoint and its token.

The token goes to the hub's endpoint alone, and not on to where the hub sends us for the bytes.
"""

from __future__ import annotations

import datetime
import email.utils
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from ..errors import DownloadError, PackError, RuntimeMissingError
from ..versions import version_of

if TYPE_CHECKING:
    from httpx2 import Response

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may be gone at the next try."""

LONGEST_WAIT = 120.0
"""Seconds that a server may ask us to wait."""


class PassingError(DownloadError):
    """A try failed that may be repeated. `wait`: seconds that the server asked for, or None."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Web:
    """Sizes and bytes of what lies at addresses.

    Raises:
        RuntimeMissingError: huggingface_hub is not installed. PackError: offline mode is set.
    """

    def __init__(self) -> None:
        try:
            import httpx2
            import huggingface_hub
            from huggingface_hub import constants
        except ImportError as error:
            raise RuntimeMissingError(
                f'pulling a pack needs huggingface_hub ({error}); install it: pip install "talkreel[hub]"'
            ) from error
        self._httpx: ModuleType = httpx2
        self._hub: ModuleType = huggingface_hub
        self._constants: ModuleType = constants
        if constants.is_offline_mode():
            raise PackError("HF_HUB_OFFLINE is set, so nothing is fetched; unset it, or bring the pack's folder here")

    def hub_url(self, repository: str, revision: str, path: str) -> str:
        """The address of a file of the hub, below HF_ENDPOINT where that is set.

        Raises:
            PackError: no repository can have that name.
        """
        try:
            url: str = self._hub.hf_hub_url(repository, path, revision=revision, endpoint=self._endpoint)
        except ValueError as error:
            raise PackError(f"{repository!r} is no repository of the hub ({_text(error)}); see the manifest") from error
        return url

    @property
    def _endpoint(self) -> str:
        """The library reads HF_ENDPOINT once, when it is imported; it may have been imported for something else."""
        return (os.environ.get("HF_ENDPOINT") or str(self._constants.ENDPOINT)).rstrip("/")

    @cached_property
    def _session(self) -> Any:
        return self._hub.get_session()

    def _headers(self, url: str) -> dict[str, str]:
        headers = {"User-Agent": f"talkreel/{version_of('talkreel')}", "Accept-Encoding": "identity"}
        ours = _origin(url) == _origin(self._endpoint)
        if ours and not self._constants.HF_HUB_DISABLE_IMPLICIT_TOKEN and (token := self._hub.get_token()):
            headers["Authorization"] = f"Bearer {token}"
        return headers

    @contextmanager
    def _request(self, method: str, url: str, **headers: str) -> Iterator[Response]:
        """A response with its body unread.

        Raises:
            PassingError: the network failed, here or while the body is read. DownloadError: the address is unusable.
        """
        timeout = self._constants.HF_HUB_DOWNLOAD_TIMEOUT
        sent = self._headers(url) | headers
        try:
            with self._session.stream(method, url, headers=sent, timeout=timeout, follow_redirects=True) as response:
                yield response
        except (self._httpx.UnsupportedProtocol, self._httpx.InvalidURL, self._httpx.TooManyRedirects) as error:
            raise DownloadError(f"{url} cannot be fetched ({error}); check the address") from error
        except self._httpx.TransportError as error:
            raise PassingError(
                f"{url} cannot be fetched ({_text(error)}); pull again when the network is back"
            ) from error

    def size(self, url: str) -> int:
        """Bytes of what lies there, without fetching it.

        Raises:
            PassingError, DownloadError: no answer, or a refusal.
        """
        with self._request("HEAD", url) as response:
            for answer in (*response.history, response):
                if (linked := answer.headers.get("X-Linked-Size", "")).isdigit():
                    return int(linked)
            length = response.headers.get("Content-Length", "")
            if response.status_code == 200 and length.isdigit():
                return int(length)
        # Addresses that are signed for GET refuse HEAD: ask for one byte, the answer names the whole length.
        with self._request("GET", url, Range="bytes=0-0") as response:
            _check_status(url, response, 200, 206)
            total = response.headers.get("Content-Range", "").rpartition("/")[2]
            length = total if response.status_code == 206 else response.headers.get("Content-Length", "")
            if not length.isdigit():
                raise DownloadError(f"{url}: the server does not say how long it is; use another address")
            return int(length)

    @contextmanager
    def read(self, url: str, start: int, size: int) -> Iterator[Iterator[bytes]]:
        """The bytes from `start` to the end, `size` being what lies there in all.

        Raises:
            PassingError: the network failed; what was read so far is good. DownloadError: a refusal, or not of `size`.
        """
        with self._request("GET", url, **({"Range": f"bytes={start}-"} if start else {})) as response:
            _check_status(url, response, 200, 206)
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise DownloadError(
                    f"{url}: the server sends it compressed, so it cannot be resumed; use another address"
                )
            if response.status_code == 206:
                wanted = f"bytes {start}-{size - 1}/{size}"
                if (found := response.headers.get("Content-Range")) != wanted:
                    raise DownloadError(f"{url}: the server sent {found} instead of {wanted}; use another place")
                yield response.iter_raw()
                return
            if (length := response.headers.get("Content-Length")) not in (None, str(size)):
                raise DownloadError(f"{url} has {length} bytes instead of {size}; use another place")
            yield _skip(response.iter_raw(), start)

    def text(self, url: str, limit: int) -> bytes:
        """A small document.

        Raises:
            PassingError, DownloadError: no answer, a refusal, or more than `limit` bytes.
        """
        with self._request("GET", url) as response:
            _check_status(url, response, 200)
            data = b""
            for chunk in response.iter_raw():
                data += chunk
                if len(data) > limit:
                    raise DownloadError(
                        f"{url} has more than {limit} bytes; give the address of a pack's manifest.json"
                    )
            return data


def _check_status(url: str, response: Response, *good: int) -> None:
    status = response.status_code
    if status in good:
        return
    if status in PASSING:
        raise PassingError(f"{url}: the server answers {status}; pull again later", _wait(response))
    cure = {
        401: "set HF_TOKEN to a token that may read it",
        403: "set HF_TOKEN to a token that may read it, and accept its terms on its page",
        404: "check the address, or HF_ENDPOINT",
        407: "give the proxy's user and password in HTTPS_PROXY",
        416: "it became shorter, pull again",
    }
    raise DownloadError(f"{url}: the server answers {status}; {cure.get(status, 'use another address')}")


def _wait(response: Response) -> float | None:
    """Seconds that the server asks us to wait: Retry-After (RFC 9110), or as the hub says it, by RateLimit's `t`."""
    asked = response.headers.get("Retry-After", "")
    if not asked and (limit := re.search(r"\br=0\b.*\bt=(\d+)", response.headers.get("RateLimit", ""))):
        asked = limit[1]
    if asked.isdigit():
        return min(float(asked), LONGEST_WAIT)
    try:
        seconds = (email.utils.parsedate_to_datetime(asked) - datetime.datetime.now(datetime.UTC)).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _skip(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Without the first bytes: for a server that cannot begin in the middle."""
    for chunk in chunks:
        if count >= len(chunk):
            count -= len(chunk)
        else:
            yield chunk[count:]
            count = 0


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port


def _text(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def below(base: str, path: str) -> str:
    """The address of a path below a folder's address."""
    return urljoin(base if base.endswith("/") else base + "/", quote(path))
