"""What a person would send at some ε: shown before a study exists, on a curve that is nobody's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpfda.collector.pages.charts import curves
from dpfda.curves import CurveEncoder
from dpfda.errors import DpfdaError
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import SecureSource

_POINTS = np.linspace(0, 1, 61)


def encoder_of(form: Mapping[str, str]) -> CurveEncoder:
    """The encoder that a form describes: B-splines on [0, 1], a public size of the curves."""
    return CurveEncoder(
        "bspline",
        n_basis=int(form.get("n_basis") or 4),
        rescale="tanh",
        scale=float(form.get("scale") or 1.0),
    )


def noise_card(form: Mapping[str, str]) -> str:
    """An example curve, the report it might become, and a sentence on bits."""
    try:
        epsilon = float(form.get("epsilon") or 1.0)
        encoder = encoder_of(form)
        if encoder.n_features > 30 or not 1e-3 <= epsilon <= 100:
            return '<p class="error">Choose 4 to 30 functions and ε from 0.001 to 100.</p>'
        scale = float(form.get("scale") or 1.0)
        example = scale * (np.sin(2 * np.pi * _POINTS) + 0.5 * _POINTS)
        encoded = encoder.encode(example[None, :], _POINTS, strict=False)
        share = epsilon * encoder.n_features / (encoder.n_features + 1)
        laplace = Mechanism.from_dict(
            {"name": "laplace", "epsilon": share, "dimension": encoder.n_features}
        )
        noisy = laplace.randomize(encoded, SecureSource())
        told = np.clip(noisy, -0.999, 0.999)
        keep = RandomizedResponse(epsilon=epsilon).keep_probability
    except (DpfdaError, ValueError, OverflowError):
        return '<p class="error">These values make no study yet.</p>'
    deviation = float(np.sqrt(laplace.variance(encoded).mean()))
    drawn = curves(
        "an example curve (line) and a report of it (dashes)",
        _POINTS.tolist(),
        {
            "line": encoder.draw(encoded, _POINTS)[0].tolist(),
            "second": encoder.draw(told, _POINTS)[0].tolist(),
        },
    )
    return (
        f'{drawn}<p class="soft"><span class="key"></span>an example curve '
        '<span class="key warm"></span>a report of it, cut to the public range</p>'
        f"<p>A reported curve: each of its {encoder.n_features} numbers in [−1, 1] gets "
        f"noise of standard deviation <strong>{deviation:.2f}</strong>.</p>"
        f"<p>A verdict: one bit, true with probability <strong>{keep:.3f}</strong>.</p>"
    )
