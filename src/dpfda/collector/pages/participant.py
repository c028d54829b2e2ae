"""The page on which people take part: a file that is the same wherever it is served.

The page on which people take part as files for any other host.
"""

from __future__ import annotations

import html
from pathlib import Path
from urllib.parse import urlsplit

from litestar import MediaType, Response, get
from litestar.params import FromPath

from dpfda.client.http import Connection
from dpfda.collector.api import Service
from dpfda.collector.middleware import checked_origin
from dpfda.collector.refusal import no_study
from dpfda.errors import InvalidParameter

STATIC = Path(__file__).parent / "static"
PAGE = STATIC / "take-part.html"
ASSETS = ("take-part.css", "take-part.js", "client.js", "take-part.webmanifest", "icon.svg")
WORKER = "worker.js"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src {}; manifest-src 'self'; base-uri 'none'; form-action 'none'"
)


def write_files(folder: Path, collector: str) -> list[Path]:
    """Write the page for one collector, and what it loads; returns the files.

    The page talks to that collector and to nobody else: its own policy says so to the browser. It
    is the same page as on the collector otherwise.

    Args:
        folder: of a web server; ``index.html``, ``take-part/`` and ``static/`` are made in it.
        collector: where studies are.
    """
    Connection(collector).close()  # refuses what is no address, or is not encrypted
    parts = urlsplit(collector)
    origin = checked_origin(f"{parts.scheme}://{parts.netloc}", name="--collector")
    if parts.query or parts.fragment:
        raise InvalidParameter("--collector", "an address without query and fragment", collector)
    policy = _POLICY.format(origin)
    text = PAGE.read_text(encoding="utf-8")
    head, place = '<meta charset="utf-8">\n', 'data-collector=""'
    assert text.count(head) == text.count(place) == 1
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    text = text.replace(head, head + meta)
    text = text.replace(place, f'data-collector="{html.escape(collector.rstrip("/"))}"')
    page = folder / "take-part" / "index.html"
    written = {folder / "index.html": (STATIC / "root.html").read_bytes(), page: text.encode()}
    written |= {folder / "static" / name: (STATIC / name).read_bytes() for name in ASSETS}
    written[folder / "take-part" / WORKER] = (STATIC / WORKER).read_bytes()
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return list(written)


@get("/take-part/worker.js", include_in_schema=False)
async def worker() -> Response[bytes]:
    """Opens the page without a network; beside the page, because that is all it may serve."""
    return Response((STATIC / WORKER).read_bytes(), media_type="text/javascript")


@get("/take-part/{study:str}", include_in_schema=False)
async def take_part(study: FromPath[str], collector: Service) -> Response[bytes]:
    """The page on which participants answer; their data stay on their device."""
    record = await collector.study(study[:16])
    if study != record.hash:  # a name that is cut short could be another study's
        raise no_study()
    return Response(PAGE.read_bytes(), media_type=MediaType.HTML)
