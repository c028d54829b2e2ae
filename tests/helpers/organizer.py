"""Somebody who plans studies in the pages of a real collector."""

from __future__ import annotations

import re
import secrets
from typing import Any
from urllib.parse import urlencode

from forked_collector import QuickCollector

from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages import planning
from dpfda.collector.pages.form import PRESETS
from dpfda.collector.pages.session import Visitor
from dpfda.planning import people_file

ENOUGH = 120  # seconds, on a machine that does other things, too


STUDIES, SECONDS = 2, 5
VISITOR = Visitor(session=b"", until=0.0, csrf="")


def _fewer() -> None:
    planning._STUDIES = planning._QUICK_STUDIES = STUDIES
    people_file._SECONDS = SECONDS


class QuickForecasts(QuickCollector):
    """Simulates fewer studies, and reads a file for a shorter time, than others do."""

    prepare = _fewer


class Organizer:
    """Somebody who is signed in and sends forms."""

    def __init__(self, collector: CollectorProcess, key: str = "") -> None:
        self.url = collector.url
        status, _, headers = self.post("/login", {"key": key or collector.admin_key})
        assert status == 303
        self.cookie = headers["Set-Cookie"].partition(";")[0]
        with Connection(self.url) as connection:
            page = connection.ask("GET", "/", headers={"Cookie": self.cookie}).body.decode()
        self.csrf = re.search(r'name="csrf" value="(\w+)"', page)[1]  # type: ignore[index]

    def post(self, path: str, form: dict[str, str], cookie: str = "") -> tuple[int, str, Any]:
        kind = "application/x-www-form-urlencoded"
        return self.send(path, urlencode(form).encode(), kind, cookie)

    def send(self, path: str, body: bytes, kind: str, cookie: str) -> tuple[int, str, Any]:
        """Any bytes at all."""
        headers = {"Content-Type": kind, "Cookie": cookie}
        with Connection(self.url, timeout=ENOUGH) as connection:
            connection._connection.request("POST", path, body, headers)
            answer = connection._connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers

    def forecast(self, **typed: str) -> tuple[int, str]:
        known = PRESETS | {"family": "smooth", "non_private_error": "0.1", "csrf": self.csrf}
        return self.post("/forecast", known | typed, self.cookie)[:2]

    def forecast_from(self, name: str, content: bytes, **typed: str) -> tuple[int, str]:
        """The form with a file, as a browser sends it."""
        mark = secrets.token_hex(8)
        known = PRESETS | {"family": "smooth", "non_private_error": "0.1", "csrf": self.csrf}
        lines = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in (known | typed).items()
        ]
        head = f'Content-Disposition: form-data; name="sample"; filename="{name}"'
        lines.append(f"--{mark}\r\n{head}\r\nContent-Type: application/octet-stream\r\n\r\n")
        body = "".join(lines).encode() + content + f"\r\n--{mark}--\r\n".encode()
        kind = f"multipart/form-data; boundary={mark}"
        return self.send("/forecast", body, kind, self.cookie)[:2]
