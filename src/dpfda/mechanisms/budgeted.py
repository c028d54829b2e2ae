"""Noise for a share of a budget: what the look's norm and the kind of budget ask for."""

from __future__ import annotations

from dpfda._validate import FloatArray
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.additive_laplace import AdditiveLaplace
from dpfda.mechanisms.ellipsoid_laplace import EllipsoidLaplace
from dpfda.mechanisms.gaussian import Gaussian
from dpfda.privacy.cost import Cost


def l2_noise(cost: Cost, *, sensitivity: float, axes: FloatArray) -> Additive:
    """For neighbors with ‖h/a‖₂ ≤ S: spherical Laplace, or Gaussian where δ > 0.

    Examples:
        >>> import numpy as np
        >>> l2_noise(Cost(epsilon=1.0).part(0.5), sensitivity=2.0, axes=np.ones(3)).epsilon
        0.5
    """
    shape = tuple(axes.tolist())
    if cost.pure:
        return EllipsoidLaplace(epsilon=cost.epsilon_spent, sensitivity=sensitivity, axes=shape)
    return Gaussian(mu=cost.mu, delta=cost.delta, sensitivity=sensitivity, axes=shape)


def l1_noise(cost: Cost, *, sensitivity: float, axes: FloatArray) -> AdditiveLaplace:
    """For neighbors with Σ|h_j|/a_j ≤ S: independent Laplace noise, pure ε only."""
    shape = tuple(axes.tolist())
    return AdditiveLaplace(epsilon=cost.epsilon_spent, sensitivity=sensitivity, axes=shape)
