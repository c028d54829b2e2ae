"""Nonlinear members: shallow trees and kernel machines, their votes, and the evaluation task.

A member gives each encoded curve a probability of one of two sides. Members are averaged by
weighted votes, or by weighted probabilities (000 §3.3, 001 Eq. (11)), and not by their parameters.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._registry import Registered, revive
from dpfda._validate import AnyArray, FloatArray, IntArray
from dpfda.curves import CurveEncoder, read_encoder
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.composed import Joined
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import Source
from dpfda.protocol.fields import array, check_fields, flag, number, parts, vector, whole
from dpfda.protocol.linear_scores import chances, decided
from dpfda.protocol.model import ClassModel
from dpfda.protocol.plan import Label
from dpfda.protocol.query import Records
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.questions import verdict_epsilon
from dpfda.report.documents import Body

MOST_DEPTH = 8
_LARGEST = 1e9  # limit of the numbers in a rule: far outside of the box, without overflow


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberRule(Registered, family="member rule"):
    """Gives each row a probability of one of two sides."""

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def chances(self, rows: FloatArray) -> FloatArray:
        """Probabilities of the first side for rows (n, d), shape (n,)."""

    @abstractmethod
    def fits(self, columns: int) -> bool:
        """Whether the rule can be applied to rows with this number of columns."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeRule(MemberRule, name="tree"):
    """A complete binary tree; the children of node i are 2i + 1 (at most the threshold) and 2i + 2.

    Attributes:
        features: the feature of each node, shape (2^depth - 1,).
        thresholds: the threshold of each node.
        leaves: the probability at each leaf, from left to right, shape (2^depth,).

    Examples:
        >>> tree = TreeRule(features=[0], thresholds=[0.5], leaves=[0.1, 0.8])
        >>> tree.chances(np.array([[0.5], [0.6]])).tolist()
        [0.1, 0.8]
    """

    features: IntArray = array("whole", "nodes", least=0, most=1 << 16)
    thresholds: FloatArray = array("real", "nodes", least=-_LARGEST, most=_LARGEST)
    leaves: FloatArray = array("real", "leaves", least=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.leaves) not in {1 << depth for depth in range(MOST_DEPTH + 1)}:
            rule = f"1, 2, 4, ... or {1 << MOST_DEPTH} of them"
            raise InvalidParameter("leaves", rule, len(self.leaves))
        if len(self.features) != len(self.leaves) - 1:
            raise InvalidParameter("features", "one fewer than leaves", len(self.features))

    def chances(self, rows: FloatArray) -> FloatArray:
        """The probability at each row's leaf."""
        place, who = np.zeros(len(rows), dtype=np.int64), np.arange(len(rows))
        for _ in range(len(self.leaves).bit_length() - 1):
            above = rows[who, self.features[place]] > self.thresholds[place]
            place = 2 * place + 1 + above
        return np.asarray(self.leaves[place - len(self.features)])

    def fits(self, columns: int) -> bool:
        """Whether the features of all nodes exist."""
        return bool(np.all(self.features < columns))


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelRule(MemberRule, name="kernel"):
    """(1 + s)/2, cut at 0 and 1, with s = intercept + Σ_i weights_i exp(-|z - centers_i|²/width²).

    Attributes:
        centers: shape (n, d).
        weights: shape (n,).
        intercept: one number.
        width: width of the kernel.

    Examples:
        >>> rule = KernelRule(centers=[[0.0]], weights=[0.5], intercept=0.0, width=1.0)
        >>> rule.chances(np.array([[0.0], [9.0]])).tolist()
        [0.75, 0.5]
    """

    centers: FloatArray = array("real", "rows", "columns", least=-_LARGEST, most=_LARGEST)
    weights: FloatArray = vector("rows", least=-_LARGEST, most=_LARGEST)
    intercept: float = number(least=-_LARGEST, most=_LARGEST)
    width: float = number(least=1e-6, most=_LARGEST)

    def chances(self, rows: FloatArray) -> FloatArray:
        """Probabilities of the first side for rows (n, d), shape (n,)."""
        inside = rows[:, : self.centers.shape[1]]
        products = gaussian_kernel(inside, self.centers, width=self.width)
        return np.clip((1 + self.intercept + products @ self.weights) / 2, 0.0, 1.0)

    def fits(self, columns: int) -> bool:
        """Whether the centers have at most this number of columns."""
        return bool(self.centers.shape[1] <= columns)


def gaussian_kernel(rows: FloatArray, others: FloatArray, *, width: float) -> FloatArray:
    """exp(-|x - y|²/width²) of rows (..., n, d) and others (..., m, d), shape (..., n, m)."""
    apart = rows[..., :, None, :] - others[..., None, :, :]
    return np.asarray(np.exp(-np.einsum("...d,...d->...", apart, apart) / width**2))


def votes(rules: Sequence[MemberRule], rows: FloatArray, *, soft: bool) -> FloatArray:
    """The vote of each rule for each row, (n, B): ±1 or, if `soft`, 2 probability - 1."""
    given = np.stack([rule.chances(rows) for rule in rules], axis=1)
    return np.asarray(2 * given - 1 if soft else np.where(given >= 0.5, 1.0, -1.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleTask(Task, name="rule"):
    """Answer for each of m numbered rules, or their weighted vote, whether it is right about me.

    Privacy:
        ε-LDP for curve and label together: m bits, each through a randomized response of its own
        with ε/m (basic composition).

    Attributes:
        dimension: d, the number of features.
        rules: the members, the same for all people.
        weights: for the vote, the weight of each rule for each score, score by score.
        soft: whether probabilities are averaged instead of votes.
        member: the rules about which a person is asked, shape (n, m); 0 for the vote.
        right: the correct output of a rule, or of the vote, for each label: one row per rule, one
            column per label number.

    Examples:
        >>> tree = TreeRule(features=[0], thresholds=[0.0], leaves=[0.2, 0.9])
        >>> task = RuleTask(epsilon=1.0, people=1, dimension=1, rules=(tree,), member=[[0]],
        ...                 right=[[0, 1]])
        >>> task.width
        1
    """

    bits: ClassVar[bool] = True

    dimension: int = whole(most=1 << 16)
    rules: tuple[MemberRule, ...] = parts(lambda: MemberRule)
    weights: FloatArray = array("real", "votes", least=-1, most=1, default=())
    soft: bool = flag(default=False)
    member: IntArray = array("whole", "people", "m", least=0)
    right: IntArray = array("whole", "asked", "labels", least=0, most=1 << 20)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rules or not all(rule.fits(self.dimension) for rule in self.rules):
            raise InvalidParameter("rules", f"for {self.dimension} features", "others")
        if len(self.weights) % len(self.rules):
            raise InvalidParameter("weights", "one of each rule for each score", len(self.weights))
        asked = 1 if len(self.weights) else len(self.rules)
        if self.right.shape[0] != asked or not self.right.shape[1]:
            raise InvalidParameter("right", f"{asked} rows, not empty", self.right.shape)
        if np.any(self.member >= asked):
            raise InvalidParameter("member", f"below {asked}", "others")

    @cached_property
    def mechanism(self) -> Joined:
        """Randomized response on each bit."""
        each = RandomizedResponse(epsilon=verdict_epsilon(self.epsilon, self.width))
        return Joined(parts=(each,) * self.width)

    @property
    def width(self) -> int:
        """The number m of answers."""
        return self.sizes["m"]

    def exact(self, records: Records, source: Source) -> FloatArray:
        """+1 if the rule is right about the person, -1 if it is wrong."""
        z, y = records
        said = np.empty(self.member.shape, dtype=np.int64)
        if len(self.weights):
            table = self.weights.reshape(-1, len(self.rules))
            said[:] = decided(votes(self.rules, z, soft=self.soft) @ table.T)[:, None]
        else:
            for rule in np.unique(self.member):
                who, place = np.nonzero(self.member == rule)
                said[who, place] = self.rules[rule].chances(z[who]) >= 0.5
        labels = np.clip(y, 0, self.right.shape[1] - 1)
        return np.where(said == self.right[self.member, labels[:, None]], 1.0, -1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        """One tree, a tree and a kernel machine, and the vote of both."""
        leaves: dict[str, Any] = {"leaves": [0.1, 0.9, 0.8, 0.0]}
        tree = TreeRule(features=np.array([1, 0, 0]), thresholds=np.array([0, 0.3, -0.3]), **leaves)
        points: dict[str, Any] = {"centers": [[0.2, 0.1], [-0.4, 0.0]], "weights": [1.0, -1.0]}
        kernel = KernelRule(**points, intercept=0.1, width=0.5)
        common: dict[str, Any] = {"epsilon": 1.0, "people": 1, "dimension": 2}
        given: list[dict[str, Any]] = [
            {"rules": (tree,), "member": [[0]], "right": [[0, 1, 0]]},
            {"rules": (tree, kernel), "member": [[1, 0]], "right": [[0, 1], [1, 0]]},
            {
                "rules": (tree, kernel),
                "member": [[0]],
                "right": [[0, 1]],
                "weights": [0.4, -0.6],
                "soft": True,
            },
        ]
        return [cls(**common, **one) for one in given]


class VoteModelBody(Body):
    """The document of a `VoteModel`."""

    encoder: dict[str, Any]
    classes: tuple[Label, ...]
    rules: list[dict[str, Any]]
    weights: list[list[float]]
    soft: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteModel(ClassModel):
    """A weighted vote, or average of probabilities, of nonlinear members.

    With two classes, a single score predicts ``classes[1]`` if it is at least 0, and ``classes[0]``
    otherwise. With several classes, the largest score determines the class.

    Attributes:
        encoder: maps a curve to z*.
        rules: the members.
        weights: weight of each member for each score, shape (m, B).
        soft: whether probabilities are averaged instead of votes.

    Examples:
        >>> from dpfda.privacy.guarantee import Guarantee
        >>> model = VoteModel(
        ...     encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)]), classes=("no", "yes"),
        ...     rules=(TreeRule(features=[0], thresholds=[0.0], leaves=[0.2, 0.9]),),
        ...     weights=[[1.0]], soft=False, guarantee=Guarantee(epsilon=1.0, model="local"),
        ... )
        >>> VoteModel.from_json(model.to_json()).predict([[-0.5], [0.5]]).tolist()
        ['no', 'yes']
    """

    kind: ClassVar[str] = "vote model"
    body: ClassVar[type[Body]] = VoteModelBody

    encoder: CurveEncoder
    rules: tuple[MemberRule, ...]
    weights: FloatArray
    soft: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        revive(self, "encoder", read_encoder)
        made = [
            rule if isinstance(rule, MemberRule) else MemberRule.from_dict(rule)
            for rule in self.rules
        ]
        object.__setattr__(self, "rules", tuple(made))
        scores = 1 if len(self.classes) == 2 else len(self.classes)
        weights = _validate.batch("weights", self.weights, columns=len(made))
        if len(weights) != scores:
            raise InvalidParameter("weights", f"{scores} rows", len(weights))
        object.__setattr__(self, "weights", weights)
        if not made or not all(rule.fits(self.encoder.n_features) for rule in made):
            raise InvalidParameter("rules", "for the features of the encoder", "others")

    @property
    def folds(self) -> FloatArray:
        """No folds, because distances of features from their centers are not used."""
        return np.zeros(0)

    def scores(self, features: FloatArray) -> FloatArray:
        """Scores of encoded curves, shape (n, m)."""
        return np.asarray(votes(self.rules, features, soft=self.soft) @ self.weights.T)

    def decide(self, features: FloatArray) -> IntArray:
        """Label numbers of encoded curves."""
        return decided(self.scores(features))

    def chances(self, features: FloatArray) -> FloatArray:
        """Probabilities (n, K): (1 + score)/2 for two classes, softmax of several scores."""
        scores = self.scores(features)
        if scores.shape[1] > 1:
            return chances(scores)
        second = np.clip((1 + scores[:, 0]) / 2, 0.0, 1.0)
        return np.column_stack([1 - second, second])

    def predict(self, X: Curves, *, grid_points: GridPoints = None) -> AnyArray:
        """Labels of new curves."""
        return np.asarray(self.classes)[self.decide(self.encoder.encode(X, grid_points))]
