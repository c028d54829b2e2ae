"""What a form has sent: its fields, and the one file that may come with them."""

from __future__ import annotations

from email.message import Message
from urllib.parse import parse_qsl

from multipart import PushMultipartParser

from dpfda.collector.refusal import Refused
from dpfda.curves.files import Handed

_FIELDS = 50
_NAME = 100  # characters of a file's name


def posted(body: bytes, kind: str) -> tuple[dict[str, str], Handed | None]:
    r"""Fields and file, all in memory.

    Examples:
        >>> body = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'
        >>> posted(body, "multipart/form-data; boundary=x")
        ({'a': '1'}, None)
        >>> posted(b"a=1&b=2", "application/x-www-form-urlencoded")
        ({'a': '1', 'b': '2'}, None)
    """
    header = Message()
    header["Content-Type"] = kind
    fields: dict[str, str] = {}
    file: Handed | None = None
    try:
        if header.get_content_type() != "multipart/form-data":
            return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=_FIELDS)), None
        for name, filename, content in _segments(body, str(header.get_boundary() or "")):
            if filename is None:
                fields[name] = content.decode("utf-8", "replace")
            elif filename and file is None:  # without a name: none was chosen
                file = Handed(filename.replace("\\", "/").rpartition("/")[2][-_NAME:], content)
    except (ValueError, LookupError):
        raise Refused(400, "malformed", "the form cannot be read") from None
    return fields, file


def _segments(body: bytes, boundary: str) -> list[tuple[str, str | None, bytes]]:
    found: list[tuple[str, str | None, bytes]] = []
    with PushMultipartParser(boundary, max_segment_count=_FIELDS, strict=True) as parser:
        head, parts = None, [b""]
        for event in parser.parse(body):
            if isinstance(event, (bytes, bytearray)):
                parts.append(bytes(event))
            elif event is not None:
                head, parts = event, [b""]
            elif head is not None:
                found.append((head.name, head.filename, b"".join(parts)))
    return found
