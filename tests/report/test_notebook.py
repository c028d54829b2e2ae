"""What notebooks show: results, promises and budgets as HTML in the notebook's own colors."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import matplotlib
import numpy as np
import pytest

import dpfda
from dpfda import Guarantee, Ledger, PrivateLinearRegression, PrivateMean, forecast, plan_study
from dpfda.privacy.tally import Spent, Tallied

EVIL = "<script>alert(1)</script>"
X = np.random.default_rng(0).uniform(-1, 1, (300, 8))
BOUNDS: dict[str, Any] = {"random_state": 0, "unit": EVIL}


def shown() -> list[Any]:
    ledger = Ledger(2.0, limit_delta=1e-5)
    mean = PrivateMean(1.0, value_range=(-1, 1), ledger=ledger, **BOUNDS).fit(X)
    line = PrivateLinearRegression(1.0, feature_ranges=(-1, 1), target_range=(-1, 1), **BOUNDS)
    plan = plan_study(300, 0.2, value_range=(-1, 1), classes=("no", EVIL))
    study = dpfda.LocalCurveClassifier(1.0, value_range=(-1, 1), random_state=0)
    labels = X[:, 0] > 0
    promise = Guarantee(1.0, unit=EVIL, assumptions=(EVIL,))
    return [
        mean.release_,
        mean.report(title=EVIL),
        ledger,
        promise,
        Spent((Tallied(label=EVIL, promise=promise, time=0, paid=False),)),
        line.fit(X[:, :2], X[:, 0]).model_,
        forecast(plan, non_private_error=0.1, studies=4, also=()),
        study.fit(X, labels).evaluate(X, labels),
    ]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag not in {"img", "source"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_results_and_budgets_are_safe_whole_pieces_of_a_page() -> None:
    backend = matplotlib.get_backend()
    for one in shown():
        page, tags = one._repr_html_(), Tags()
        tags.feed(page)
        assert not tags.open, type(one).__name__
        assert "table" in tags.seen, type(one).__name__
        # Colors of the notebook, no style for the rest of its page, nothing loaded.
        assert not {"script", "style", "html", "link"} & tags.seen
        assert "://" not in page
    assert matplotlib.get_backend() == backend
