"""Loaders against the facts of the sources."""

import inspect

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.datasets import loaders
from dpfda.datasets.catalogue import CATALOGUE, DataFileMissing
from dpfda.errors import InvalidData, InvalidParameter

LOADERS = {
    name.removeprefix("load_"): loader
    for name, loader in vars(loaders).items()
    if name.startswith("load_")
}


@pytest.fixture
def load(shared_data):
    """A loader by name, on the files that are not part of the repository."""

    def loaded(name, **options):
        if not (shared_data / CATALOGUE[name].file).is_file():
            pytest.skip(f"{CATALOGUE[name].file} is not in the folder of data sets")
        return LOADERS[name](shared_data, **options)

    return loaded


def test_every_file_of_the_catalogue_has_a_loader_and_the_reverse():
    assert set(LOADERS) == set(CATALOGUE)
    for loader in LOADERS.values():
        assert {"path", "verify"} <= set(inspect.signature(loader).parameters)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_missing_file_says_where_to_get_it(name, tmp_path, monkeypatch):
    monkeypatch.delenv("DPFDA_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    for arguments in ((), (tmp_path,), (tmp_path / "other.npz",)):
        with pytest.raises(DataFileMissing) as caught:
            LOADERS[name](*arguments)
        message = str(caught.value)
        assert CATALOGUE[name].source in message
        assert CATALOGUE[name].file in message
        assert "DPFDA_DATA" in message
        assert str(tmp_path) not in message


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "berkeley_growth.npz"
    np.savez(path, X=np.zeros((2, 3)), age=np.arange(3.0), sex=np.array(["F", "M"]))
    with pytest.raises(InvalidData, match="contents have the checksum"):
        loaders.load_growth(path)
    own = loaders.load_growth(path, verify=False)
    assert own.X.shape == (2, 3)
    assert own.y.tolist() == [1.0, -1.0]


def test_the_shape_is_checked_after_the_hash():
    from dpfda.datasets.catalogue import Columns

    with pytest.raises(InvalidData, match=r"data of shape \(93, 31\), got shape \(2, 3\)"):
        Columns({}, "growth", verify=True).dataset("", X=np.zeros((2, 3)))


def test_the_folder_can_come_from_the_environment(monkeypatch, load, shared_data):
    load("growth")
    monkeypatch.setenv("DPFDA_DATA", str(shared_data))
    assert loaders.load_growth().X.shape == (93, 31)


@pytest.mark.parametrize("name", CATALOGUE)
def test_parts_fit_together(name, load):
    data = load(name)
    n, columns = data.X.shape
    for part in (data.y, data.groups, data.train, *data.extra.values()):
        assert part is None or len(part) == n
    assert data.X.dtype.kind == "f"
    if data.grid_points is None:
        assert data.feature_names == () or len(data.feature_names) == columns
    else:
        assert data.grid_points.shape == (columns,)
        assert np.all(np.diff(data.grid_points) > 0)
        if not np.isnan(data.X).all(axis=1).any():
            domain = data.grid_points[0], data.grid_points[-1]
            encoder = CurveEncoder(n_basis=5, domain_range=domain)
            z_star = encoder.encode(data.X, data.grid_points)
            assert np.all(np.abs(z_star) <= 1)
    assert data.name == name
    assert f"X {data.X.shape}" in repr(data)
    assert len(repr(data)) < 250  # shapes, no values
    half = data.take(np.arange(n) < n // 2)
    assert half.X.shape == (n // 2, columns)


def counts(values):
    found, numbers = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), numbers.tolist(), strict=True))


def test_phoneme_has_the_counts_of_its_source_and_437_speakers(load):
    data = load("phoneme")
    assert counts(data.y) == {"aa": 695, "ao": 1022, "dcl": 757, "iy": 1163, "sh": 872}
    assert len(np.unique(data.groups)) == 437
    assert data.train.sum() == 3340
    assert data.X[0, 0] == 9.8577
    pair = load("phoneme", classes=("sh", "iy"))
    assert counts(pair.y) == {-1.0: 1163, 1.0: 872}
    with pytest.raises(InvalidParameter, match="classes must be two of aa, ao, dcl, iy, sh"):
        load("phoneme", classes=("sh", "th"))


def test_diabetes_has_778_distinct_rows(load):
    """C21: 2768 rows, of which 1990 are copies."""
    data = load("diabetes")
    assert counts(data.y) == {-1.0: 1816, 1.0: 952}
    assert len(np.unique(data.groups)) == 778
    twins = data.groups == data.groups[-1]
    assert np.ptp(data.X[twins], axis=0).max() == 0
    distinct = load("diabetes", deduplicate=True)
    assert counts(distinct.y) == {-1.0: 506, 1.0: 272}
    np.testing.assert_array_equal(distinct.X[:768], data.X[:768])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("adult", {-1.0: 37155, 1.0: 11687}),
        ("phishing", {-1.0: 4898, 1.0: 6157}),
        ("kdd", {-1.0: 9828, 1.0: 40172}),
        ("gunpoint", {-1.0: 100, 1.0: 100}),
        ("italy_power_demand", {-1.0: 549, 1.0: 547}),
        ("growth", {-1.0: 39, 1.0: 54}),
        ("mnist_4_9", {-1.0: 6824, 1.0: 6958}),
        ("fashion", {-1.0: 7000, 1.0: 7000}),
    ],
)
def test_two_class_sets_have_the_counts_of_their_sources(name, expected, load):
    assert counts(load(name).y) == expected


def test_text_columns_keep_their_words(load):
    data = load("adult")
    column = data.feature_names.index("sex")
    words = data.categories["sex"]
    assert words == ("Female", "Male")
    assert words[int(data.X[0, column])] == "Male"
    assert data.train.sum() == 32561


def test_repeated_people_are_grouped(load):
    dti = load("dti")
    assert len(np.unique(dti.groups)) == 142
    assert np.isnan(dti.X).sum() == 36
    assert np.isnan(dti.y).sum() == 42
    assert len(np.unique(load("tecator").groups)) == 193


def test_activity_keeps_complete_people_unless_asked(load):
    assert len(load("activity").X) == 5742
    assert len(load("activity", complete=False).X) == 6680


def test_mortality_curves_are_put_together_from_the_right_cells(load):
    data = load("un_mortality")
    row = np.flatnonzero(
        (data.extra["name"] == "Afghanistan")
        & (data.extra["sex"] == "F")
        & (data.extra["period"] == "1955-1960")
    )
    assert len(row) == 1
    assert data.X[row[0], 0] == 0.28241059
    assert (data.extra["location_type"] == 4).sum() == 201 * 2 * 14
    deaths = load("un_deaths")
    assert deaths.X.sum() == pytest.approx(286_237, abs=1)
    assert counts(deaths.y)["Africa"] == 57


def test_warfarin_has_nine_predictors(load):
    data = load("warfarin")
    assert data.X.shape == (5528, 9)
    assert data.y.mean() == pytest.approx(30.98, abs=0.005)
    first = dict(zip(data.feature_names, data.X[0], strict=True))
    assert (first["age_decade"], first["height_cm"], first["asian"]) == (6.0, 193.04, 0.0)
    assert (first["vkorc1_a_alleles"], first["cyp2c9_variants"]) == (1.0, 0.0)
    assert set(np.unique(data.X[:, 7][~np.isnan(data.X[:, 7])])) == {0.0, 1.0, 2.0}
