"""A progress bar for computations that take long, on a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 2.0  # seconds before a bar is shown


@contextmanager
def progress(
    label: str, tell: Callable[[float], None] | None = None
) -> Iterator[Callable[[float], None]]:
    """Yield a function that shows the share done, between 0 and 1; the bar appears after 2 s.

    Nothing is shown without a terminal or a notebook, without tqdm, or if ``TQDM_DISABLE`` is set.
    The bar is on stderr, so that stdout contains only the result.

    Args:
        label: text before the bar.
        tell: called instead of showing a bar, if given.
    """
    if tell is not None:
        yield tell
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield lambda share: None
        return
    shape = "{desc} {percentage:3.0f} % |{bar}| {elapsed}<{remaining}"
    with tqdm(
        total=1.0, desc=label, delay=_PATIENCE, disable=None, leave=False, bar_format=shape
    ) as bar:
        yield lambda share: bar.update(share - bar.n) and None
