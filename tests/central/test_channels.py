"""Curves of several channels: each has its own mean, and all share one budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from skfda import FDataGrid

from dpfda import Ledger, PrivateCovariance, PrivateFunctionOnScalar, PrivateMean
from dpfda.central.channels import ChannelMeans, ChannelQuery
from dpfda.central.mean import FunctionMechanism
from dpfda.central.queries import BallMean
from dpfda.central.release import Release
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.privacy.cost import Cost
from dpfda.protocol.query import AdditiveQuery, Query

RNG = np.random.default_rng(0)
T = np.linspace(0, 1, 20)
TRUTH = np.stack([np.sin(3 * T), 50 + 10 * T])
X = np.stack([TRUTH[k] + s * RNG.normal(size=(1500, 1)) for k, s in ((0, 0.1), (1, 1.0))], axis=2)
RANGES = [(-1, 2), (0, 100)]


def mean(epsilon: float = 2.0, **more: Any) -> PrivateMean:
    return PrivateMean(epsilon, **{"value_range": RANGES, "random_state": 0} | more)


@pytest.mark.parametrize("name", sorted(FunctionMechanism.members()))
def test_every_mechanism_releases_every_channel(name: str) -> None:
    delta = 1e-5 if FunctionMechanism.named(name).needs_delta else 0.0
    ledger = Ledger(8.0, limit_delta=delta)
    fitted = mean(8.0, mechanism=name, delta=delta, ledger=ledger).fit(X, grid_points=T)
    release = fitted.release_
    assert release.channels == 2
    assert fitted.mean_.shape == (2, 20)
    error = np.abs(fitted.mean_ - X.mean(axis=0).T).mean(axis=1)
    assert np.all(error < [0.3, 5.0])  # the widths are 3 and 100
    assert fitted.guarantee_.epsilon == 8.0
    assert ledger.remaining.epsilon < 1e-6  # neither less nor more than was announced
    low, high = release.interval(0.99, simultaneous=True)
    assert np.all((low <= high).all(axis=1))


def test_a_channel_costs_its_share() -> None:
    """The first of two is what half of the budget gives for it alone, with the same noise."""
    both = mean(2.0, delta=0).fit(X, grid_points=T)
    alone = mean(1.0, delta=0, value_range=RANGES[0]).fit(X[:, :, 0], grid_points=T)
    np.testing.assert_allclose(both.mean_[0], alone.mean_, atol=1e-12)
    noise = [law.variance[0].sum() for law in both.release_.noise if law.variance[0].any()]
    assert noise == pytest.approx([law.variance.sum() for law in alone.release_.noise])


def test_every_form_of_input_is_read_alike() -> None:
    wanted = mean().fit(X, grid_points=T).mean_
    np.testing.assert_array_equal(mean().fit(FDataGrid(X, T)).mean_, wanted)
    np.testing.assert_array_equal(mean().fit(list(X), grid_points=T).mean_, wanted)
    pairs = [(T, x) for x in X]
    around = mean(domain_range=(0, 1)).fit(pairs, grid_points=None).mean_
    assert around.shape == (2, 101)
    chunks = mean().fit_stream(lambda: np.array_split(X, 4), grid_points=T)
    np.testing.assert_array_equal(chunks.mean_, wanted)
    twice = mean().fit(np.repeat(X, 2, axis=0), grid_points=T, groups=np.repeat(range(1500), 2))
    np.testing.assert_allclose(twice.mean_, wanted, atol=1e-9)
    one = mean(value_range=RANGES[0])
    np.testing.assert_array_equal(
        one.fit(X[:, :, :1], grid_points=T).mean_, one.fit(X[:, :, 0], grid_points=T).mean_
    )


def test_the_release_knows_its_channels() -> None:
    release = mean().fit(X, grid_points=T).release_
    again = Release.from_json(release.to_json())
    assert again.channels == 2
    assert "2 channels" in repr(again)
    np.testing.assert_allclose(again.values([0.1, 0.5]), release.values([0.1, 0.5]))
    np.testing.assert_allclose(release.values(T), release.values())
    curve = release.to_skfda()
    assert (curve.n_samples, curve.dim_codomain) == (1, 2)
    np.testing.assert_allclose(curve.data_matrix[0].T, release.values())
    panels = release.plot().figure.axes  # channels have units of their own
    assert [ax.get_title() for ax in panels] == ["mean, channel 1", "mean, channel 2"]
    assert release.parameters["value_range"] == ((-1.0, 2.0), (0.0, 100.0))
    document = release.to_dict() | {"channels": 3}
    with pytest.raises(InvalidData, match="noisy"):
        Release.from_dict(document)


def test_surfaces_must_be_asked_for() -> None:
    s, t = np.linspace(0, 1, 6), np.linspace(0, 2, 5)
    surfaces = np.outer(s, t) + 0.1 * RNG.normal(size=(400, 1, 1))
    model = PrivateMean(8.0, value_range=(-1, 3), random_state=0)
    asked = model.fit(surfaces, grid_points=(s, t))
    assert (asked.mean_.shape, asked.release_.channels) == ((6, 5), 1)
    channels = model.fit(surfaces, grid_points=s)
    assert (channels.mean_.shape, channels.release_.channels) == ((5, 6), 5)


def test_who_reads_one_channel_says_so() -> None:
    told = "of one channel .release each by itself, all inside one `dpfda.budget`., got 2 channels"
    rows = RNG.uniform(size=(1500, 1))
    slopes = PrivateFunctionOnScalar(1.0, feature_ranges=(0, 1), value_range=(0, 100))
    for fit in (
        lambda: PrivateCovariance(1.0, value_range=(0, 100)).fit(X),
        lambda: PrivateCovariance(1.0, value_range=(0, 100)).fit(FDataGrid(X, T)),
        lambda: slopes.fit(rows, X),
    ):
        with pytest.raises(InvalidData, match=told):
            fit()
    with pytest.raises(InvalidParameter, match="grid_points must be of one variable"):
        PrivateCovariance(1.0, value_range=(0, 100)).fit(X, grid_points=(T, [0, 1]))
    fitted = PrivateFunctionOnScalar(
        1.0, feature_ranges=(0, 1), value_range=(0, 100), random_state=0
    ).fit(rows, X[:, :, 1])
    with pytest.raises(InvalidData, match="array"):
        fitted.score(rows, X)
    with pytest.raises(InvalidParameter, match="value_range must be one pair, or 2 of them"):
        mean(value_range=[(0, 1)] * 3).fit(X)


def test_what_one_channel_cannot_ask_costs_nothing() -> None:
    ledger = Ledger(8.0)
    harsh = FunctionMechanism.named("iclp_ar")(psi=5.0)  # leaves nothing of the narrow channel
    with pytest.raises(InvalidParameter, match="psi"):
        mean(mechanism=harsh, ledger=ledger, value_range=RANGES[::-1]).fit(X[:, :, ::-1])
    assert not ledger.entries


def test_looks_at_channels_are_checked() -> None:
    place: dict[str, Any] = {"center": np.zeros(2), "axes": np.ones(2), "radius": 1.0}
    look = BallMean(cost=Cost(epsilon=1.0), n=4, **place)
    first = ChannelQuery(query=look, channel=0, channels=2)
    assert Query.from_dict(first.to_dict()).digest == first.digest
    here = np.arange(8.0).reshape(4, 2) / 8
    sums = [first.sums((here, other)) for other in (here, -here)]
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], look.sums((here,)))
    last = ChannelQuery(query=look, channel=1, channels=2)
    np.testing.assert_array_equal(last.sums((-here, here)), sums[0])
    with pytest.raises(InvalidParameter, match="channel must be below 2"):
        ChannelQuery(query=look, channel=2, channels=2)
    with pytest.raises(InvalidParameter, match="unit"):
        ChannelQuery(query=look, channel=0, channels=2, unit="household")
    with pytest.raises(InvalidParameter, match="query must be a sum over single rows"):
        Query.from_dict(first.to_dict() | {"query": first.to_dict()})
    (asked,) = ChannelMeans.examples(n=20, epsilon=1.0, delta=0.0)
    with pytest.raises(InvalidParameter, match="shares"):
        ChannelMeans(epsilon=1.0, n=20, parts=(*asked.parts, asked.parts[0]))
    with pytest.raises(InvalidParameter, match="the same budget"):
        ChannelMeans(epsilon=2.0, n=20, parts=asked.parts)


def test_a_query_about_a_channel_states_what_its_query_states() -> None:
    """Holders count records and refuse assumptions by it, and sites refuse what is not linear."""
    queries = (one for member in Query.members().values() for one in member.examples())
    additive = [one for one in queries if isinstance(one, AdditiveQuery) and len(one.columns) == 1]
    assert {one.linear for one in additive} == {False, True}
    for query in additive:
        asked = ChannelQuery(query=query, channel=1, channels=2, unit=query.unit)
        for name in (
            "linear",
            "announced",
            "assumptions",
            "event",
            "block_rows",
            "size",
            "largest",
        ):
            assert getattr(asked, name) == getattr(query, name), (query.name, name)
        assert asked.summed.most_rows == query.summed.most_rows
