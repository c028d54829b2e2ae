"""Learners of nonlinear members: a shallow tree, and a kernel machine.

Reports are first clipped to the box [-1, 1]^d. At a small ε most reports lie far outside of it, and
a member fitted to them would be constant inside the box.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpfda import _validate
from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.local.mrma.rules import (
    MOST_DEPTH,
    KernelRule,
    MemberRule,
    TreeRule,
    gaussian_kernel,
)

Fields = dict[str, FloatArray]
"""Fields of B rules, each with a leading axis of length B."""


class RuleLearner(Registered, ABC, family="rule learner"):
    """Fits B rules, each to its n rows.

    Its data are noisy reports, so a fit is post-processing and spends no budget.
    """

    rule: ClassVar[type[MemberRule]]

    def fit(self, features: FloatArray, labels: FloatArray) -> Fields:
        """Fields of the rules.

        Args:
            features: (B, n, d), finite; they are clipped to [-1, 1].
            labels: (B, n), -1 or +1.
        """
        return self._fit(np.clip(features, -1.0, 1.0), labels)

    @abstractmethod
    def _fit(self, features: FloatArray, labels: FloatArray) -> Fields:
        """`fit` for features inside the box."""

    def rules(self, fields: Fields) -> list[MemberRule]:
        """The rules with these fields."""
        count = len(next(iter(fields.values())))
        plain: list[dict[str, Any]] = [
            {name: values[b] for name, values in fields.items()} for b in range(count)
        ]
        return [self.rule(**one) for one in plain]


@dataclass(frozen=True, kw_only=True)
class ShallowTree(RuleLearner, name="shallow_tree"):
    """A classification tree (CART, scikit-learn) of a small depth.

    The probability at a leaf with n rows, of which n₊ are positive, is (n₊ + 1)/(n + 2).

    Attributes:
        depth: the number of splits on a path.
        leaf_size: least number of rows at a leaf.

    Examples:
        >>> rows = np.array([[[-0.5], [-0.4], [0.4], [0.5]]])
        >>> learner = ShallowTree(depth=1, leaf_size=1)
        >>> tree = learner.rules(learner.fit(rows, np.array([[-1.0, -1.0, 1.0, 1.0]])))[0]
        >>> tree.chances(np.array([[-1.0], [1.0]])).tolist()
        [0.25, 0.75]
    """

    rule: ClassVar[type[MemberRule]] = TreeRule

    depth: int = 2
    leaf_size: int = 5

    def __post_init__(self) -> None:
        _validate.whole("depth", self.depth, most=MOST_DEPTH)
        _validate.whole("leaf_size", self.leaf_size)

    def rules(self, fields: Fields) -> list[MemberRule]:
        """The rules; numbers of features become integers again after a server was restored."""
        return super().rules(fields | {"features": fields["features"].astype(np.int64)})

    def _fit(self, features: FloatArray, labels: FloatArray) -> Fields:
        grown = [self._grown(*one) for one in zip(features, labels, strict=True)]
        return {name: np.stack([tree[name] for tree in grown]) for name in grown[0]}

    def _grown(self, rows: FloatArray, labels: FloatArray) -> Fields:
        # Devices and collectors import this module without scikit-learn.
        from sklearn.tree import DecisionTreeClassifier

        made = DecisionTreeClassifier(
            max_depth=self.depth, min_samples_leaf=self.leaf_size, random_state=0
        )
        tree = made.fit(rows, labels > 0).tree_
        node = np.zeros(1, dtype=np.int64)  # node of the grown tree at each position of a level
        features, thresholds = [], []
        for _ in range(self.depth):
            leaf = tree.children_left[node] < 0  # a leaf is its own child on the next level
            features.append(np.where(leaf, 0, tree.feature[node]))
            thresholds.append(np.where(leaf, 0.0, tree.threshold[node]))
            below = np.where(leaf, node, tree.children_left[node])
            above = np.where(leaf, node, tree.children_right[node])
            node = np.column_stack([below, above]).ravel()
        at = made.apply(rows)
        size = np.bincount(at, minlength=tree.node_count)
        positive = np.bincount(at[labels > 0], minlength=tree.node_count)
        return {
            "features": np.concatenate(features),
            "thresholds": np.concatenate(thresholds),
            "leaves": ((positive + 1) / (size + 2))[node],
        }


@dataclass(frozen=True, kw_only=True)
class KernelMachine(RuleLearner, name="kernel_machine"):
    """Ridge regression of ±1 on a Gaussian kernel (a least-squares support vector machine).

    Attributes:
        width: width of the kernel; the box has sides of length 2.
        ridge: weight of the penalty against the sum of squares.

    Examples:
        >>> rows = np.array([[[-0.5], [0.5]]])
        >>> learner = KernelMachine()
        >>> rule = learner.rules(learner.fit(rows, np.array([[-1.0, 1.0]])))[0]
        >>> (rule.chances(np.array([[-0.6], [0.6]])) > 0.5).tolist()
        [False, True]
    """

    rule: ClassVar[type[MemberRule]] = KernelRule

    width: float = 2.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("width", self.width)
        _validate.positive("ridge", self.ridge)

    def _fit(self, features: FloatArray, labels: FloatArray) -> Fields:
        kernel = gaussian_kernel(features, features, width=self.width)
        mean = labels.mean(axis=1)
        penalized = kernel + self.ridge * np.eye(labels.shape[1])
        weights = np.linalg.solve(penalized, (labels - mean[:, None])[..., None])[..., 0]
        width = np.full(len(mean), float(self.width))
        return {"centers": features, "weights": weights, "intercept": mean, "width": width}
