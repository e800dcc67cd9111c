"""Servers for tests: one that answers as it is told, and one that answers range queries about a frame."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pandas as pd

Answer = tuple[int, Any]
"""Status, and what is sent: bytes, or a value that becomes JSON."""


@dataclass
class Server:
    """A server at work: what it was asked, and what it answers."""

    answer: Callable[[str, bytes], Answer]
    url: str = ""
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)


@contextlib.contextmanager
def serving(answer: Callable[[str, bytes], Answer]) -> Iterator[Server]:
    """A server on a free port while the block lasts."""
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.asked.append((self.path, body))
            server.authorization.append(self.headers["Authorization"])
            status, content = server.answer(self.path, body)
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            with contextlib.suppress(OSError):  # whoever asked may not have waited
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "http://elsewhere/")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        server.url = f"http://127.0.0.1:{listening.server_port}"
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


def matrix(*results: tuple[dict[str, str], list[tuple[float, str]]]) -> dict[str, Any]:
    """What Prometheus answers to a range query."""
    found = [{"metric": labels, "values": [list(pair) for pair in values]} for labels, values in results]
    return {"status": "success", "data": {"resultType": "matrix", "result": found}}


def of_frame(frame: pd.DataFrame, label: str = "link") -> Callable[[str, bytes], Answer]:
    """Answers queries that are names of columns, at the steps of the frame's rows; empty cells are no sample."""
    seconds = (
        pd.to_datetime(frame["timestamp"], utc=True).astype("datetime64[ns, UTC]").astype("int64").to_numpy() / 1e9
    )
    names = frame[label].to_numpy()

    def answer(path: str, body: bytes) -> Answer:
        assert path == "/api/v1/query_range"
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        column = frame[form["query"]].to_numpy()
        start, end, step = (float(form[key]) for key in ("start", "end", "step"))
        assert (end - start) / step < 11_000
        wanted = (seconds >= start) & (seconds <= end) & ~np.isnan(column)
        results = []
        for name in dict.fromkeys(names[wanted]):
            own = wanted & (names == name)
            values = [(float(time), repr(float(value))) for time, value in zip(seconds[own], column[own], strict=True)]
            results.append(({"__name__": form["query"], label: str(name), "job": "links"}, values))
        return 200, matrix(*results)

    return answer
