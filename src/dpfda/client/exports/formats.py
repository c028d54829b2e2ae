"""Detect the format of a file from its first bytes, and read XML, JSON, archives and tables."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO
from xml.parsers import expat

from dpfda.client.exports.series import Series, Zone, read_time, unix_time, zone_of
from dpfda.client.exports.tables import table_series
from dpfda.errors import InvalidData

_PIECE = 1 << 16
_MOST_BYTES = 64 << 20  # largest file that is read as a whole
_MOST_POINTS, _MOST_SERIES = 5_000_000, 1_000
_MOST_FIELDS = 5_000  # of one JSON object
_LONGEST_TAG = 1 << 20  # bytes; for each new piece, the parser reads an unfinished tag again
_TEXTS = 20  # pieces of text that are stored for one element; numbers and times are short
_MOST_RATIO = 100  # exports compress by factors of 10 to 50; deflate can reach 1,000
_FREE = 16 << 20  # bytes that an archive may unpack to before the ratio is checked
_DEEPEST = 12
_READABLE = re.compile(r".*\.(csv|tsv|json|xml|gpx|tcx)", re.IGNORECASE)
_ASIDE = re.compile(r"(^|/)(__MACOSX/|\._)|_cda\.xml$", re.IGNORECASE)
_FORMATS = {"HealthData": "Apple Health", "gpx": "GPX", "TrainingCenterDatabase": "TCX"}
_QUANTITIES = {
    "hr": "heart rate", "HeartRateBpm": "heart rate", "ele": "altitude",
    "AltitudeMeters": "altitude", "DistanceMeters": "distance", "cad": "cadence",
    "Cadence": "cadence", "RunCadence": "cadence", "atemp": "temperature", "power": "power",
    "Watts": "power", "speed": "speed", "Speed": "speed",
}  # fmt: skip
_TIME = re.compile(
    r"(date_?time|timestamp|time|start_?time(nanos|millis)?|start(_?date)?|date|day|bedtime_start)",
    re.IGNORECASE,
)
_OTHER_TIME = re.compile(r"time|date|nanos|millis|stamp|(^|_)end|offset", re.IGNORECASE)
_IDENTITY = re.compile(
    r"(^|[ _])(u?u?id|version|confidence|latitude|longitude|lat|lon|lng)$", re.IGNORECASE
)
_NUMBER = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, repr=False, eq=False)
class Export:
    """The content of a file. It is private and never leaves the device."""

    format: str
    series: list[Series]

    @property
    def dated(self) -> bool:
        """Whether its times have dates."""
        return any(one.dated for one in self.series)


class _Collected:
    """Collects series by name while a file is read."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[list[int], list[float]]] = {}
        self._points = 0

    def add(self, name: str, wall: int, value: float) -> None:
        self._points += 1
        if self._points > _MOST_POINTS:
            raise InvalidData("FILE", f"an export of at most {_MOST_POINTS} measurements")
        if name in self.found or len(self.found) < _MOST_SERIES:
            times, values = self.found.setdefault(name, ([], []))
            times.append(wall)
            values.append(value)

    def export(self, format: str) -> Export:
        made = [Series.in_order(name, *found) for name, found in sorted(self.found.items())]
        return _some(format, [one for one in made if one.times.size])


def _some(format: str, series: list[Series]) -> Export:
    if not series:
        raise InvalidData("FILE", "a file with numbers beside their times")
    return Export(format, series)


def read_export(file: Path | bytes, *, zone: str | None = None) -> Export:
    """The series of measurements in a file of a watch or an app.

    Args:
        file: a path, or the bytes themselves.
        zone: time zone of the measurements, for times in UTC; by default this machine's.

    Raises:
        InvalidData: the file cannot be read, or it is malicious.
    """
    clocks = zone_of(zone)
    with io.BytesIO(file) if isinstance(file, bytes) else file.open("rb") as opened:
        if opened.read(2) == b"PK":
            opened.seek(0)
            return _unpacked(opened, clocks)
        opened.seek(0)
        return _read(iter(lambda: opened.read(_PIECE), b""), clocks)


def _read(pieces: Iterator[bytes], zone: Zone) -> Export:
    first = next(pieces, b"")
    start = first.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        return _xml(start, pieces, zone)
    held, size = [first], len(first)
    for piece in pieces:
        size += len(piece)
        if size > _MOST_BYTES:
            raise InvalidData("FILE", f"at most {_MOST_BYTES >> 20} MB, unless it is XML")
        held.append(piece)
    wide = first.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = b"".join(held).decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidData("FILE", "a text file, XML, JSON or a zip archive") from None
    if start.startswith(b"{") or (start.startswith(b"[") and not _is_row(text)):
        found = _Collected()
        try:
            document = json.loads(text, object_pairs_hook=_fields)
        except InvalidData:
            raise
        except (ValueError, RecursionError):
            raise InvalidData("FILE", "a whole JSON document") from None
        _walk(document, (), found, partial(_wall, zone=zone, day=_first_date(document)), 0)
        return found.export("JSON")
    return _some("CSV", table_series(text, zone))


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MOST_FIELDS:
        raise InvalidData("FILE", f"JSON with at most {_MOST_FIELDS} fields in an object")
    return dict(pairs)


def _is_row(text: str) -> bool:
    return re.match(r"\[[\d.,\s]*\][;,]", text) is not None


def _unpacked(opened: BinaryIO, zone: Zone) -> Export:
    try:
        with zipfile.ZipFile(opened) as archive:
            entries = [
                one
                for one in archive.infolist()
                if _READABLE.fullmatch(one.filename) and not _ASIDE.search(one.filename)
            ]
            top = r"[^/]*(/[^/]*)?\.xml"  # the file name depends on the language of the phone
            health = [one for one in entries if re.fullmatch(top, one.filename, re.IGNORECASE)]
            chosen = health if len(health) == 1 else entries
            if len(chosen) != 1:
                rule = "an archive of one export (unpack it, and choose one of its files)"
                raise InvalidData("FILE", rule, f"{len(chosen)} readable files")
            with archive.open(chosen[0]) as inner:
                return _read(_bounded(inner, chosen[0].compress_size), zone)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError):
        raise InvalidData("FILE", "a whole zip archive without a password") from None


def _bounded(inner: IO[bytes], packed: int) -> Iterator[bytes]:
    out = 0
    while piece := inner.read(_PIECE):
        out += len(piece)
        if out > _FREE and out > _MOST_RATIO * packed:
            raise InvalidData(
                "FILE", f"an archive that unpacks to at most {_MOST_RATIO} times its size"
            )
        yield piece


def _xml(start: bytes, pieces: Iterator[bytes], zone: Zone) -> Export:
    """Read an XML export element by element, without storing the document."""
    found, parser = _Collected(), expat.ParserCreate()
    state: dict[str, Any] = {"format": "", "close": None, "unread": 0}
    text: list[str] = []

    def refused(*_: object) -> None:
        raise InvalidData("FILE", "XML without entity declarations")

    def opened(tag: str, attributes: dict[str, str]) -> None:
        state["unread"] = 0
        name = tag.rpartition(":")[2]
        if not state["format"]:
            if name not in _FORMATS:
                raise InvalidData("FILE", "an Apple Health export, GPX or TCX, where it is XML")
            state["format"] = _FORMATS[name]
            makes = _apple if state["format"] == "Apple Health" else _track
            state["open"], state["close"] = makes(found, zone)
        state["open"](name, attributes)
        text.clear()

    def said(piece: str) -> None:
        state["unread"] = 0
        if len(text) < _TEXTS:
            text.append(piece)

    def closed(tag: str) -> None:
        state["unread"] = 0
        state["close"](tag.rpartition(":")[2], "".join(text).strip())
        text.clear()

    parser.EntityDeclHandler = refused
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    parser.CharacterDataHandler = said
    try:
        parser.Parse(start, False)
        for piece in pieces:
            state["unread"] += len(piece)
            if state["unread"] > _LONGEST_TAG:
                raise InvalidData("FILE", "XML whose tags are shorter than 1 MB")
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError:
        raise InvalidData("FILE", "a whole XML document") from None
    return found.export(state["format"])


Open = Callable[[str, dict[str, str]], None]
Close = Callable[[str, str], None]


def _apple(found: _Collected, zone: Zone) -> tuple[Open, Close]:
    """Records of an Apple Health export, at the local time when a measurement began."""

    def opened(name: str, attributes: dict[str, str]) -> None:
        value = attributes.get("value", "")
        if name != "Record" or not _NUMBER.fullmatch(value):
            return
        time = read_time(attributes.get("startDate", ""), "month", zone)
        if time is not None:
            found.add(in_words(attributes.get("type", "")), time[0], float(value))

    return opened, lambda name, text: None


def _track(found: _Collected, zone: Zone) -> tuple[Open, Close]:
    """Points of a track (GPX `trkpt`, TCX `Trackpoint`). Positions are not read."""
    points, values, state = {"trkpt", "Trackpoint"}, dict[str, str](), {"time": "", "within": ""}

    def opened(name: str, attributes: dict[str, str]) -> None:
        if name in points:
            values.clear()
            state["time"] = ""
        if name in _QUANTITIES:
            state["within"] = name

    def closed(name: str, text: str) -> None:
        if name in ("time", "Time"):
            state["time"] = text
        elif name == "Value" and state["within"] == "HeartRateBpm":
            values["HeartRateBpm"] = text
        elif name in _QUANTITIES and text:
            values[name] = text
        elif name in points:
            time = read_time(state["time"], "month", zone)
            for key, value in values.items():
                if time is not None and _NUMBER.fullmatch(value):
                    found.add(_QUANTITIES[key], time[0], float(value))

    return opened, closed


Wall = Callable[[Any], int | None]


def _walk(node: object, path: tuple[str, ...], found: _Collected, wall: Wall, depth: int) -> None:
    """Collect lists of objects with a time and numbers, at any place in a document."""
    if depth > _DEEPEST:
        return
    if isinstance(node, dict):
        for key, value in node.items():
            _walk(value, (*path, key), found, wall, depth + 1)
    elif isinstance(node, list):
        for row in node:
            if not _measured(row, path, found, wall):
                _walk(row, path, found, wall, depth + 1)


def _measured(row: object, path: tuple[str, ...], found: _Collected, wall: Wall) -> bool:
    """Store the numbers of a list entry; False if it has no time or no numbers."""
    if not isinstance(row, dict):
        return False
    leaves = list(_leaves(row, ()))
    time = _row_time([x for key, x in leaves if _TIME.fullmatch(key.split(" ")[-1])], wall)
    if time is None:
        return False
    kind, count = row.get("dataTypeName"), 0
    for key, value in leaves:
        text = isinstance(value, str) and re.fullmatch(r"[+-]?\d+(\.\d+)?", value)
        if not text and (isinstance(value, (str, bool)) or value is None):
            continue
        if not _OTHER_TIME.search(key) and not _IDENTITY.search(key):
            count += 1
            name = kind if isinstance(kind, str) else " ".join((*path, key))
            found.add(in_words(name), time, float(value))
    return count > 0


def _row_time(values: list[Any], wall: Wall) -> int | None:
    """The time of a row: the first with a date, joined with a time of day in another field."""
    read = [(x, at) for x in values if (at := wall(x)) is not None]
    dates = [at for x, at in read if isinstance(x, str) and ":" not in x]
    whole = [at for x, at in read if not isinstance(x, str) or _dated_clock(x)]
    clocks = [x for x, _ in read if isinstance(x, str) and ":" in x and not _dated_clock(x)]
    if dates and clocks and not whole:
        return dates[0] + read_time(clocks[0], "month", int)[0]  # type: ignore[index]
    return next(iter(whole or [at for _, at in read]), None)


def _dated_clock(text: str) -> bool:
    read = read_time(text, "month", int)
    return ":" in text and read is not None and read[1]


def _leaves(node: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Numbers and texts of an object and of nested objects; a list counts as its only entry."""
    if len(path) > 4:
        return
    for key, value in node.items():
        one = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(one, dict):
            yield from _leaves(one, (*path, key))
        elif not isinstance(one, list):
            yield " ".join((*path, key)), one


def _wall(value: object, *, zone: Zone, day: str) -> int | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        instant = unix_time(value)
        return None if instant is None else zone(instant)
    read = read_time(value, "month", zone) if isinstance(value, str) else None
    if read is None or read[1]:
        return read and read[0]
    midnight = read_time(day, "month", zone)
    return read[0] + (midnight[0] if midnight else 0)


def _first_date(node: object, depth: int = 0) -> str:
    """The first date in a document, used for clock times without a date."""
    if depth > _DEEPEST:
        return ""
    if isinstance(node, str):
        found = re.match(r"\d{4}-\d\d-\d\d", node)
        return found[0] if found else ""
    inner = node.values() if isinstance(node, dict) else node[:3] if isinstance(node, list) else ()
    return next(filter(None, (_first_date(one, depth + 1) for one in inner)), "")


def in_words(name: str) -> str:
    """A technical name in words.

    Examples:
        >>> in_words("HKQuantityTypeIdentifierHeartRate"), in_words("com.google.heart_rate.bpm")
        ('heart rate', 'heart rate bpm')
    """
    short = re.sub(
        r"^HK(Quantity|Category)TypeIdentifier|^com\.google\.|^com\.samsung\.(s?health)\.", "", name
    )
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", short)
    return re.sub(r"[_.\s:-]+", " ", apart).strip().lower()[:60]
