"""Put views of the participants' page side by side: ``python tools/page_pictures.py``.

The views are screenshots of `tests/collector/test_take_part.py` (out/screenshots); the picture is
docs/guides/take-part.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
VIEWS = ("ready", "leaves", "done")
GAP, COLORS = 24, 48


def main() -> None:
    """Write it."""
    folder = ROOT / "out" / "screenshots"
    first, *rest = (Image.open(folder / f"take-part-{view}-360-light.png") for view in VIEWS)
    views = [*_halves(first.convert("RGB")), *rest]
    width = sum(view.width for view in views) + GAP * (len(views) - 1)
    picture = Image.new("RGB", (width, max(view.height for view in views)), "white")
    left = 0
    for view in views:
        picture.paste(view, (left, 0))
        left += view.width + GAP
    small = picture.quantize(COLORS, dither=Image.Dither.NONE)
    small.save(ROOT / "docs" / "guides" / "take-part.png", optimize=True)


def _halves(view: Image.Image) -> list[Image.Image]:
    """A long view in two, cut between two of its parts: in the middle of empty rows."""
    pixels = np.asarray(view)
    plain = (pixels == pixels[:, :1]).all(axis=(1, 2))
    empty = [y for y in range(4, len(plain) - 4) if plain[y - 4 : y + 5].all()]
    cut = min(empty, key=lambda y: abs(y - view.height / 2))
    return [view.crop((0, 0, view.width, cut)), view.crop((0, cut, view.width, view.height))]


if __name__ == "__main__":
    main()
