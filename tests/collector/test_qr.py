"""A link as a picture: the modules are those of the code, with a quiet zone, on any page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import segno

from dpfda.collector.pages.templating import qr_svg

LINK = f"https://collector.example/take-part/{'0123456789abcdef' * 4}#invitation=a&b"


def dark(path: str) -> set[tuple[int, int]]:
    """The cells that strokes of width 1 cover."""
    x, y, found = 0.0, 0.0, set()
    for sign, numbers in re.findall(r"([Mmh])([^Mmh]*)", path):
        values = [float(one) for one in numbers.replace("-", " -").split()]
        if sign == "h":
            found |= {(int(x) + k, int(y)) for k in range(int(values[0]))}
            x += values[0]
        else:
            x, y = (values[0], values[1]) if sign == "M" else (x + values[0], y + values[1])
    return found


def test_the_picture_shows_the_code_of_the_link() -> None:
    picture = ElementTree.fromstring(qr_svg(LINK))
    matrix = segno.make(LINK, micro=False, error="m").matrix
    wanted = {(4 + x, 4 + y) for y, row in enumerate(matrix) for x, one in enumerate(row) if one}
    paper, ink = list(picture)
    assert dark(ink.attrib["d"]) == wanted
    side = len(matrix) + 8
    assert picture.attrib == {"viewBox": f"0 0 {side} {side}", "class": "qr"}
    assert (paper.attrib["fill"], ink.attrib["stroke"]) == ("#fff", "#000")
    assert "style" not in qr_svg(LINK), "the pages' policy would refuse it"
