"""The participant page, a file that is the same on every host.

It is served by the collector, and written as files for other hosts.
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
    """Write the page for one collector with the files that it loads; return their paths.

    A content security policy in the page allows connections only to that collector. Otherwise it is
    the same page as on the collector.

    Args:
        folder: folder of a web server; ``index.html``, ``take-part/`` and ``static/`` are created
            in it.
        collector: address of the collector.
    """
    Connection(collector).close()  # raises an error for invalid or unencrypted addresses
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
    """The service worker, which opens the page offline; its path limits it to this page."""
    return Response((STATIC / WORKER).read_bytes(), media_type="text/javascript")


@get("/take-part/{study:str}", include_in_schema=False)
async def take_part(study: FromPath[str], collector: Service) -> Response[bytes]:
    """The page on which participants answer; their data stay on their device."""
    record = await collector.study(study[:16])
    if study != record.hash:  # a shortened hash could match another study
        raise no_study()
    return Response(PAGE.read_bytes(), media_type=MediaType.HTML)
