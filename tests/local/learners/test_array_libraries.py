"""Written once against the array standard: the strict reference library and torch agree."""

from types import SimpleNamespace

import numpy as np
import pytest

from dpfda.local.mrma.learners import Learner
from dpfda.local.mrma.learners._arrays import placed, to_numpy

EXAMPLES = [example for member in Learner.members().values() for example in member.examples()]


@pytest.fixture(params=["array_api_strict", "torch", "cuda"])
def library(request):
    if request.param != "cuda":
        return pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("no accelerator here")
    return SimpleNamespace(asarray=lambda values: placed(values, "cuda"))


def batch(members=7):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((members, 20)) < 0.5, 1.0, -1.0)
    features = np.clip(0.3 * labels[:, :, None] + rng.normal(0, 0.5, (members, 20, 3)), -1, 1)
    labels[0] = 1.0  # one member with one class
    return features, labels, rng.uniform(0.0, 2.0, labels.shape)


@pytest.mark.parametrize("learner", EXAMPLES, ids=repr)
def test_same_numbers(learner, library):
    features, labels, weights = batch()
    gram = np.eye(3) + 0.3
    expected = learner.fit(features, labels, weights=weights, gram=gram)
    models = learner.fit(
        library.asarray(features),
        library.asarray(labels),
        weights=library.asarray(weights),
        gram=library.asarray(gram),
    )
    scores = models.scores(library.asarray(features))
    assert type(scores) is type(library.asarray(features)), "the result stays in the library"
    assert np.allclose(to_numpy(scores), expected.scores(features), rtol=1e-7, atol=1e-9)


def test_plain_lists_are_numpy():
    models = Learner.named("nearest_centroid")().fit([[[0.0], [1.0]]], [[-1, 1]])
    assert isinstance(models.scores([[1.0]]), np.ndarray)
