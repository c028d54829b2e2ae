"""Groups too small to tell anything of them are named, and left out of the test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import PrivateGroupComparison, PrivateMoments
from dpfda.central.moments.inference import large

T = np.linspace(0, 1, 20)


def compared(sizes: dict[str, int], *, groups: Any = None, apart: float = 0.5) -> Any:
    """Groups of given sizes, the second of them `apart`."""
    labels = np.repeat(list(sizes), list(sizes.values()))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(len(labels), 1)) + 0.3 * rng.normal(size=(len(labels), 1)) * T
    rows += apart * (labels == list(sizes)[1])[:, None]
    model = PrivateGroupComparison(
        2.0, value_range=(-4, 4), groups=groups or tuple(sizes), random_state=0
    )
    return model.fit(rows, labels)


def test_a_tiny_group_does_not_hide_the_others() -> None:
    with pytest.warns(UserWarning, match="group 'c' has about .* too few to tell anything of it"):
        found = compared({"a": 1000, "b": 997, "c": 3})
    assert large(found.moments_) == [0, 1]
    assert found.pvalue_ < 0.01
    told = found.in_words()
    assert told.startswith("Group 'c' has about ")
    assert "The other groups differ (p = 0.0005). b minus a: above 0" in told
    assert "c minus" not in told


def test_groups_that_are_large_enough_are_all_compared() -> None:
    found = compared({"a": 1000, "b": 900, "c": 100})
    assert found.moments_.warnings == ()
    assert large(found.moments_) == [0, 1, 2]
    assert found.in_words().startswith("The groups differ")
    with pytest.warns(UserWarning, match="group 'c' has about"):
        found = compared({"a": 1000, "b": 900, "c": 22})
    assert "spelt" not in " ".join(found.moments_.warnings)


def test_a_name_that_nobody_has_hints_at_its_spelling() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 1)) + T
    labels = np.repeat(["day", "nigth"], [1999, 1])
    model = PrivateGroupComparison(
        2.0, value_range=(-4, 5), groups=("day", "nigth"), random_state=0
    )
    with pytest.warns(
        UserWarning, match="group 'nigth' .* perhaps nobody is in it: check how its name is spelt$"
    ):
        model.fit(rows, labels)
    assert model.pvalue_ == 1.0
    assert model.in_words().endswith(
        "spelt. Fewer than two groups are large enough to be compared."
    )


def test_one_group_needs_no_size() -> None:
    rows = np.random.default_rng(0).normal(size=(600, 1)) + T
    assert (
        PrivateMoments(2.0, value_range=(-4, 5), random_state=0).fit(rows).moments_.warnings == ()
    )


def test_two_small_groups_do_not_hide_the_others() -> None:
    """Shares of .04 and .027 as among five real groups; before, p was above .1 in all of them."""
    sizes = {"a": 1500, "b": 650, "c": 600, "d": 120, "e": 80}
    labels = np.repeat(list(sizes), list(sizes.values()))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(len(labels), 1)) + 0.3 * rng.normal(size=(len(labels), 1)) * T
        rows += 0.4 * (labels == "b")[:, None]
        found = PrivateGroupComparison(
            1.0, value_range=(-4, 4), groups=tuple(sizes), random_state=seed
        ).fit(rows, labels)
        assert large(found.moments_) == [0, 1, 2, 3, 4]
        assert found.pvalue_ < 0.01


def test_words_about_pairs_hold_for_all_pairs_together() -> None:
    """Five groups make ten pairs: with bands of 95 % each, every third text would be wrong."""
    sizes = dict.fromkeys("abcde", 300) | {"a": 1500}
    labels, wrong = np.repeat(list(sizes), list(sizes.values())), 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(len(labels), 1)) + 0.3 * rng.normal(size=(len(labels), 1)) * T
        rows += 0.6 * (labels == "a")[:, None]  # every other pair is alike
        found = PrivateGroupComparison(
            2.0, value_range=(-4, 4), groups=tuple(sizes), random_state=seed
        ).fit(rows, labels)
        told = found.in_words().split(". ")
        assert told[0] == "The groups differ (p = 0.0005)"
        wrong += any("minus a" not in text and "0 from" in text for text in told)
    assert wrong <= 2  # 0.6 expected at most, and 2 standard deviations


def test_bands_of_groups_hold_population_and_sample() -> None:
    """Clipping moves means of skewed curves; bands without it held 23 of 30 samples' means."""
    held: dict[str, list[bool]] = {"population": [], "sample": []}
    waves = np.cos(np.pi * np.outer(np.arange(6), T))
    for seed in range(15):
        rng = np.random.default_rng(seed)
        labels = rng.choice(2, size=4000, p=[0.7, 0.3])
        scores = (rng.exponential(size=(4000, 6)) - 1) * [1.0, 0.9, 0.6, 0.4, 0.3, 0.3]
        rows = np.sin(2 * np.pi * T) + scores @ waves
        found = PrivateGroupComparison(
            4.0, value_range=(-6, 6), groups=(0, 1), random_state=seed
        ).fit(rows, labels)
        for group in range(2):
            truths = {"population": np.sin(2 * np.pi * T), "sample": rows[labels == group].mean(0)}
            for of, truth in truths.items():
                band = found.interval(group=group, of=of)
                held[of].append(bool(np.all((band.low <= truth) & (truth <= band.high))))
    for shares in held.values():
        assert np.mean(shares) >= 0.92 - 2 * 0.05  # two standard errors of 30 bands


def test_where_means_are_asked_for_only_a_group_that_may_be_empty_is_too_small() -> None:
    """A band allows for few people; a size that noise may have made of nobody is told."""
    sizes = {"a": 1700, "b": 1000, "c": 300}
    labels = np.repeat(list(sizes), list(sizes.values()))
    rows = np.random.default_rng(0).normal(size=(3000, 1)) + T + 1.5
    model = PrivateMoments(
        0.1, delta=1e-6, value_range=(-3, 7), groups=(*sizes, "none"), random_state=0
    )
    with pytest.warns(UserWarning, match="group 'none' has about") as told:
        model.fit(rows, labels)
    noise = 3000 * np.sqrt(model.moments_.variances.shares)
    assert 2 * noise[2] < model.sizes_[2] < 3 * noise[2]  # hardly known, and not nobody
    small = [str(one.message) for one in told if "too few to tell" in str(one.message)]
    assert len(small) == 1
    assert small[0].startswith("group 'none'")
    assert "too few to tell from none; " in small[0]
    assert small[0].endswith("perhaps nobody is in it: check how its name is spelt")
    assert any("between the larger groups" in str(one.message) for one in told)
