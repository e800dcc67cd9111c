"""Questions to a server over HTTP, and why there was no answer."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from netanomaly.errors import ConfigError

SHOWN = 300
"""Letters of what a server says that are told."""
MOST_BYTES = 2**28
"""Of an answer; a longer one is not read."""
MOST_BYTES_OF_ERROR = 2**16
"""Of what a server says about why it refuses."""


class Unanswered(Exception):
    """There was no answer, or none of use.

    Attributes:
        may_pass: the same question may be answered later.
        status: of HTTP; None: there was none.
    """

    def __init__(self, why: str, *, may_pass: bool, status: int | None = None) -> None:
        super().__init__(why)
        self.may_pass, self.status = may_pass, status


class TooLong(Unanswered):
    """The answer has more than `MOST_BYTES`."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection is told, not followed: it could lead anywhere, and credentials with it."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


class Endpoint:
    """A server at a base URL; user and password in it are sent as basic authentication.

    Args:
        url: http or https; may have a path, as behind a reverse proxy.
        option: that it comes from, in messages.
        seconds: to wait for an answer.

    Attributes:
        shown: the URL without user and password.

    Raises:
        ConfigError: it is no such URL.
    """

    def __init__(self, url: str, option: str, seconds: float) -> None:
        if not url.isascii() or not url.isprintable() or " " in url:
            raise ConfigError(f"{option}: '{_without_user(url)}': write letters that are not ASCII, and blanks, as %XX")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ConfigError(f"{option}: not a URL: {error}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise ConfigError(f"{option}: '{_without_user(url)}' is not a URL like http://localhost:9090")
        if parts.query or parts.fragment:
            raise ConfigError(f"{option}: '{_without_user(url)}': leave out what follows ? and #")
        name = f"[{host}]" if ":" in host else host
        self.shown = urlunsplit(
            (parts.scheme, name if port is None else f"{name}:{port}", parts.path.rstrip("/"), "", "")
        )
        self._seconds = seconds
        self._headers = {"User-Agent": "netanomaly"}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        self._opener = urllib.request.build_opener(_NoRedirect)

    def post_form(self, path: str, fields: Mapping[str, str]) -> bytes:
        """The answer to a form. Raises Unanswered."""
        return self._post(path, urlencode(fields).encode(), "application/x-www-form-urlencoded")

    def post_json(self, path: str, value: Any) -> bytes:
        """The answer to a JSON document. Raises Unanswered."""
        return self._post(path, json.dumps(value, ensure_ascii=False).encode(), "application/json")

    def _post(self, path: str, body: bytes, kind: str) -> bytes:
        headers = {**self._headers, "Content-Type": kind}
        request = urllib.request.Request(self.shown + path, body, headers)  # noqa: S310 - http or https: see above
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                return _read(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error) from error
        except TimeoutError as error:
            raise Unanswered(f"no answer within {self._seconds:g} s", may_pass=True) from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise Unanswered(f"no answer within {self._seconds:g} s", may_pass=True) from error
            raise Unanswered(_why(error.reason), may_pass=True) from error
        except (OSError, HTTPException) as error:
            raise Unanswered(_why(error), may_pass=True) from error


def _read(answer: HTTPResponse) -> bytes:
    """All of an answer."""
    found = answer.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise TooLong(f"the answer has more than {MOST_BYTES} bytes", may_pass=False)
    if answer.length:  # reading up to a number of bytes does not say so itself
        raise Unanswered(f"the answer broke off {answer.length} bytes before its end", may_pass=True)
    return found


def _refused(error: urllib.error.HTTPError) -> Unanswered:
    """What a status that is no success means."""
    if 300 <= error.code < 400:
        return Unanswered(
            f"HTTP {error.code}: it redirects to {error.headers.get('Location')}", may_pass=False, status=error.code
        )
    try:
        said = error.read(MOST_BYTES_OF_ERROR).decode("utf-8", "replace")
    except (OSError, HTTPException):
        said = ""
    may_pass = error.code in (408, 429) or error.code >= 500
    why = f"HTTP {error.code}: {_message(said) or error.reason}"
    return Unanswered(why, may_pass=may_pass, status=error.code)


def _message(said: str) -> str:
    """The `error` of a JSON object, else the text, on one line."""
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = None
    text = str(found["error"]) if isinstance(found, dict) and "error" in found else said
    return " ".join(text.split())[:SHOWN]


def _why(reason: object) -> str:
    return str(getattr(reason, "strerror", None) or reason) or type(reason).__name__


def _without_user(url: str) -> str:
    """A URL that may be broken, without what stands before an @."""
    head, mark, rest = url.rpartition("@")
    return f"{head.partition('//')[0]}//{rest}" if mark and "//" in head else rest
