"""A progress bar for computations that take long, on a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 2.0  # seconds without a bar


@contextmanager
def progress(
    label: str, tell: Callable[[float], None] | None = None
) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the share done, between 0 and 1, and shows it after two seconds.

    Nothing is shown without a terminal or a notebook, without tqdm, and where ``TQDM_DISABLE`` is
    set. The bar is on stderr, so that stdout contains only the result.

    Args:
        label: words before the bar.
        tell: is called instead, if given.
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
