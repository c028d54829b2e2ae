"""Make the guides' pictures of pages: ``python tools/page_pictures.py``.

They are parts of screenshots that tests take::

    DPFDA_SCREENSHOTS=out/screenshots python -m pytest tests/collector/test_pictures.py \
        tests/collector/test_take_part.py

DPFDA_SCREENSHOTS names their folder here, too. The pictures are docs/guides/take-part.png and
docs/guides/run-a-study-*.png.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image

GUIDES = Path(__file__).resolve().parent.parent / "docs" / "guides"
SCREENSHOTS = Path(os.environ.get("DPFDA_SCREENSHOTS", "out/screenshots"))
PARTICIPANT = ("ready", "leaves", "done")
ORGANIZER = {"form": ("new", 1250), "result": ("finished", 1370), "nothing": ("null", 720)}
"""The page, and about how many of its pixels are shown, from the top."""
HEADER, MARGIN = 90, 100  # of an organizer's page, not shown
SCALE, GAP, COLORS = 0.75, 24, 48


def main() -> None:
    """Write them."""
    first, *rest = (_screenshot(f"take-part-{view}-en-390") for view in PARTICIPANT)
    cut = _gap(first, first.height // 2)
    halves = [(0, 0, first.width, cut), (0, cut, first.width, first.height)]
    _save([*(first.crop(half) for half in halves), *rest], "take-part")
    for name, (page, about) in ORGANIZER.items():
        whole = _screenshot(f"{page}-1280")
        view = whole.crop((MARGIN, HEADER, whole.width - MARGIN, _gap(whole, about)))
        size = round(SCALE * view.width), round(SCALE * view.height)
        _save([view.resize(size, Image.Resampling.LANCZOS)], f"run-a-study-{name}")


def _screenshot(name: str) -> Image.Image:
    return Image.open(SCREENSHOTS / f"{name}-light.png").convert("RGB")


def _gap(view: Image.Image, about: int) -> int:
    """Where a view can be cut between two of its parts: in the middle of empty rows."""
    pixels = np.asarray(view)
    plain = (pixels == pixels[:, :1]).all(axis=(1, 2))
    empty = [y for y in range(4, len(plain) - 4) if plain[y - 4 : y + 5].all()]
    return min(empty, key=lambda y: abs(y - about))


def _save(views: list[Image.Image], name: str) -> None:
    """Side by side, in few colors."""
    width = sum(view.width for view in views) + GAP * (len(views) - 1)
    picture = Image.new("RGB", (width, max(view.height for view in views)), "white")
    left = 0
    for view in views:
        picture.paste(view, (left, 0))
        left += view.width + GAP
    small = picture.quantize(COLORS, dither=Image.Dither.NONE)
    small.save(GUIDES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
