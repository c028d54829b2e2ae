"""The page on which people take part: a file that is the same wherever it is served."""

from __future__ import annotations

from litestar import MediaType, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from dpfda.collector.pages.files import PAGE
from dpfda.collector.refusal import no_study
from dpfda.collector.service import Collector


@get("/take-part/{study:str}", include_in_schema=False)
async def take_part(study: FromPath[str], collector: NamedDependency[Collector]) -> Response[bytes]:
    """Where somebody with a link and a file takes part; all of it happens on their device."""
    record = await collector.study(study[:16])
    if study != record.hash:  # a name that is cut short could be another study's
        raise no_study()
    return Response(PAGE.read_bytes(), media_type=MediaType.HTML)
