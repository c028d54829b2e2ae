"""Vector tasks: noisy vectors of curve and label, and codewords of features and label.

`VectorTask` is step 2 of 000 and 001; `MomentTask` is described in docs/methods/moment-reports.md,
`SummaryTask` in docs/methods/vector-reports.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.cap_index import CapIndex
from dpfda.mechanisms.class_index import ClassIndex
from dpfda.mechanisms.composed import Joined
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import Source
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import CURVES_ARE_PUBLIC, LABELS_ARE_PUBLIC
from dpfda.protocol.fields import array, choice, number, whole
from dpfda.protocol.query import Answer, Records
from dpfda.protocol.task import Task, box_mechanisms, fold_centers, folded


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorTask(Task, name="vector"):
    """Report z* through a mechanism of vectors and y = ±1 through randomized response.

    Privacy:
        ε_z + ε_y = ε for curve and label together (basic composition; both parts are exact).
        With ``protects="features"`` the label is sent without noise and the curve gets all of ε;
        ``protects="labels"`` does the reverse. A person must have accepted the corresponding
        assumption.

    Attributes:
        dimension: d.
        mechanism_name: registered name of the mechanism of vectors.
        label_share: ε_y/ε; None means 1/(d+1), as in the papers.
        positive: the label numbers that count as +1, the others being -1.
        protects: which data are private: ``both``, ``features`` or ``labels``.

    Examples:
        >>> task = VectorTask(epsilon=5.0, people=1, dimension=4)
        >>> [part.epsilon for part in task.mechanism.parts]
        [4.0, 1.0]
    """

    dimension: int = whole(most=1 << 16)
    mechanism_name: str = choice(box_mechanisms, default="laplace")
    label_share: float | None = number(above=0, most=1 - 1e-9, optional=True, default=None)
    positive: IntArray = array("whole", "positives", least=0, most=1 << 20, default=(1,))
    protects: str = choice("both", "features", "labels", default="both")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumption that unprotected data are public."""
        other = {"both": (), "features": (LABELS_ARE_PUBLIC,), "labels": (CURVES_ARE_PUBLIC,)}
        return other[self.protects]

    @cached_property
    def mechanism(self) -> Joined:
        """The mechanisms of the protected data: curve, label or both."""
        whole = Cost(epsilon=self.epsilon)
        given = self.label_share
        share = Fraction(1, self.dimension + 1) if given is None else given
        both = self.protects == "both"
        for_label = whole.part(share) if both else whole
        for_curve = whole.rest(for_label) if both else whole
        spent = {"epsilon": for_curve.epsilon_spent, "dimension": self.dimension}
        curve = Mechanism.from_dict({"name": self.mechanism_name, **spent})
        label = RandomizedResponse(epsilon=for_label.epsilon_spent)
        parts = {"both": (curve, label), "features": (curve,), "labels": (label,)}
        return Joined(parts=parts[self.protects])

    @property
    def width(self) -> int:
        """The number of values in a reply: d for the curve, 1 for the label."""
        return self.dimension + 1

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The protected data: curve, ±1 label or both."""
        return self._protected(self._row(records))

    def answer(self, records: Records, source: Source) -> Answer:
        """Noisy curve and noisy ±1 label; public data are sent without noise."""
        noisy = super().answer(records, source).values
        if self.protects == "both":
            return Answer(values=noisy, n=self.people)
        row = self._row(self.fitting(records))
        mine = slice(None, -1) if self.protects == "features" else slice(-1, None)
        row[:, mine] = noisy
        return Answer(values=row, n=self.people)

    def _row(self, records: Records) -> FloatArray:
        z, y = records
        signs = np.where(np.isin(y, self.positive), 1.0, -1.0)
        return np.column_stack([z[:, : self.dimension], signs])

    def _protected(self, row: FloatArray) -> FloatArray:
        if self.protects == "both":
            return row
        return row[:, :-1] if self.protects == "features" else row[:, -1:]

    def _sent(self, answer: Answer) -> FloatArray:
        return self._protected(answer.values)

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether each row is a finite vector with a label of ±1."""
        return np.asarray(np.abs(reply[:, -1]) == 1)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two features, with every mechanism."""
        return [
            cls(epsilon=1.0, people=1, dimension=2, mechanism_name=name)
            for name in box_mechanisms()
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentTask(Task, name="moment"):
    """Report y z* through one mechanism with the whole budget.

    Privacy:
        ε-LDP for curve and label together: y z* lies in the same box as z*, so the whole budget is
        used for one vector.

    Attributes:
        dimension: d.
        mechanism_name: registered name of the mechanism of vectors.
        positive: the label number that counts as +1, shape (n,).

    Examples:
        >>> MomentTask(epsilon=1.0, people=1, dimension=4, positive=[1]).mechanism.dimension
        4
    """

    dimension: int = whole(most=1 << 16)
    positive: IntArray = array("whole", "people", least=0, most=1 << 20)
    mechanism_name: str = choice(box_mechanisms, default="piecewise")

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism of the moment vector."""
        return Mechanism.from_dict(
            {"name": self.mechanism_name, "epsilon": self.epsilon, "dimension": self.width}
        )

    @property
    def width(self) -> int:
        """The number d of products."""
        return self.dimension

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The products y z*."""
        z, y = records
        signs = np.where(y == self.positive, 1.0, -1.0)[:, None]
        return np.asarray(signs * z[:, : self.dimension])

    @classmethod
    def examples(cls) -> list[Self]:
        """Two features, with every mechanism."""
        return [
            cls(epsilon=1.0, people=1, dimension=2, positive=[1], mechanism_name=name)  # type: ignore[arg-type]
            for name in box_mechanisms()
        ]


_MOST = 1e50  # limit of public numbers, so that squares of sums of products do not overflow
_CLIP = 1e9
_ALONE, _ALONE_ROW = (1.0,), ((1.0,),)


@dataclass(frozen=True, kw_only=True, eq=False)
class SummaryTask(Task, name="summary"):
    """Report a publicly defined vector through one cap-index or class-index report.

    ψ = T clip((z* - center)/scale, ±clip) + offset, where z* is `folded` if there are folds, and
    the offset may depend on the person's class. The vector depends on `statistic`:

    * spread: (ψ, ψ² - 1);
    * products: the diagonal and √2 times the upper triangle of ψψᵀ, where ψ is shortened to the
      limit, divided by the squared limit;
    * residual: (e - p) w(1, ψ), where w(1, ψ) is shortened to the reach (which does not change the
      fixed points of a fit). With one row θ, e = 1 for label 1 and 0 otherwise, and
      p = 1/(1 + e^{-θ(1, ψ)}). With a row for each class, e is the indicator of the class and p the
      softmax of θ(1, ψ), and the vector contains the K products one after the other;
    * classes: w(1, ψ), reported together with the class;
    * cross: r w(1, ψ'), where r is the first entry of ψ and ψ' contains the others; w(1, ψ') is
      shortened to the reach.

    Vectors other than products are shortened to the limit and divided by it.

    Privacy:
        ε-LDP for curve and label together: the reply is only one report of a vector in the unit
        ball (`CapIndex`), or of a class and a vector (`ClassIndex`).

    Attributes:
        folds: centers of the first f features; if given, the vector uses `folded` features.
        statistic: the kind of vector, see above.
        classes: K.
        centers: shape (d,).
        scales: shape (d,).
        clip: number of scales from the center at which features are clipped.
        matrix: T, shape (q, d).
        offsets: shape (1, q), or (K, q) by class.
        weights: w, shape (q + 1,), or (q,) for cross; (1,) for spread and products.
        theta: θ, shape (1, q + 1) or (K, q + 1) for the residual and else (1, 1).
        reach: largest length of w(1, ψ) in a residual, and of w(1, ψ') in cross.
        limit: largest length of the vector.

    Examples:
        >>> task = SummaryTask(
        ...     epsilon=1.0, people=1, statistic="products", classes=2, centers=[0.0, 0.1],
        ...     scales=[0.5, 0.5], clip=2.0, matrix=[[1.0, 0.0], [0.5, 0.5]], offsets=[[0.0, 0.0]],
        ...     limit=2.0**0.5)
        >>> task.mechanism.dimension
        3
    """

    boxed: ClassVar[bool] = False

    folds: FloatArray = fold_centers()
    statistic: str = choice("spread", "products", "residual", "classes", "cross")
    classes: int = whole(most=1 << 12)
    centers: FloatArray = array("real", "d", least=-_MOST, most=_MOST)
    scales: FloatArray = array("real", "d", least=1 / _MOST, most=_MOST)
    clip: float = number(least=1 / _CLIP, most=_CLIP)
    matrix: FloatArray = array("real", "q", "d", least=-_MOST, most=_MOST)
    offsets: FloatArray = array("real", "c", "q", least=-_MOST, most=_MOST)
    weights: FloatArray = array("real", "w", least=-_MOST, most=_MOST, default=_ALONE)
    theta: FloatArray = array("real", "s", "t", least=-_MOST, most=_MOST, default=_ALONE_ROW)
    reach: float = number(least=1 / _MOST, most=_MOST, default=_MOST)
    limit: float = number(least=1 / _MOST, most=_MOST)

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = self.sizes
        if not sizes["q"] or not sizes["d"]:
            raise InvalidParameter("matrix", "of a row and a column at least", self.matrix.shape)
        if sizes["c"] not in (1, self.classes):
            raise InvalidParameter("offsets", f"of 1 or {self.classes} rows", self.offsets.shape)
        weights = {"residual": sizes["q"] + 1, "classes": sizes["q"] + 1}
        weights["cross"] = sizes["q"]
        if self.weights.shape != (shape := (weights.get(self.statistic, 1),)):
            raise InvalidParameter("weights", f"of shape {shape}", self.weights.shape)
        if self.statistic != "residual":
            shapes = [(1, 1)]
        else:
            shapes = [(1, sizes["q"] + 1), (self.classes, sizes["q"] + 1)]
        if self.theta.shape not in shapes:
            rule = "of shape " + " or ".join(map(str, dict.fromkeys(shapes)))
            raise InvalidParameter("theta", rule, self.theta.shape)

    @cached_property
    def mechanism(self) -> CapIndex | ClassIndex:
        """The most informative mechanism for a vector of this length."""
        size: dict[str, Any] = {"epsilon": self.epsilon, "dimension": self._entries}
        if self.statistic == "classes":
            return ClassIndex.best(**size, classes=self.classes)
        return CapIndex.best(**size)

    @property
    def _entries(self) -> int:
        """The length D of the vector."""
        q = self.sizes["q"]
        known = {"spread": 2 * q, "products": q * (q + 1) // 2, "cross": q, "classes": q + 1}
        return known.get(self.statistic, self.sizes["s"] * (q + 1))

    @property
    def width(self) -> int:
        """A reply has two values: the numbers of the codebook and of the codeword."""
        return 2

    @property
    def looks_at(self) -> int:
        """The number d of features."""
        return self.sizes["d"]

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The vector in the unit ball, preceded by the class if it is reported too."""
        z, y = records
        labels = np.clip(y, 0, self.classes - 1)
        psi = self._features(folded(z, self.folds), labels)
        if self.statistic == "spread":
            return _cut(np.concatenate([psi, psi**2 - 1], axis=1), self.limit)
        if self.statistic == "products":
            psi = _cut(psi, self.limit)
            rows, columns = np.triu_indices(psi.shape[1])
            scale = np.where(rows == columns, 1.0, np.sqrt(2))
            return np.asarray(psi[:, rows] * psi[:, columns] * scale)
        if self.statistic == "cross":
            vector = np.insert(psi[:, 1:], 0, 1.0, axis=1) * self.weights
            return _cut(psi[:, :1] * (_cut(vector, self.reach) * self.reach), self.limit)
        with_one = np.insert(psi, 0, 1.0, axis=1)
        vector = with_one * self.weights
        if self.statistic == "classes":
            return np.column_stack([labels, _cut(vector, self.limit)])
        scores = with_one @ self.theta.T
        if len(self.theta) == 1:
            residual = (y == 1)[:, None] - expit(scores)
        else:
            residual = np.eye(self.classes)[labels] - softmax(scores, axis=1)
        vector = _cut(vector, self.reach) * self.reach
        return _cut(np.einsum("nk,nj->nkj", residual, vector).reshape(len(z), -1), self.limit)

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether each row is the number of a codebook and of a codeword in it."""
        return self.mechanism.allows(reply)

    def total(self, replies: FloatArray) -> FloatArray:
        """Sum of unbiased estimates of the vectors, shape (D,), or (K, D) for `classes`."""
        return self.mechanism.totals(replies)

    def _features(self, z: FloatArray, labels: IntArray) -> FloatArray:
        """The transformed features ψ."""
        standard = (z[:, : self.looks_at] - self.centers) / self.scales
        inside = np.clip(standard, -self.clip, self.clip)
        own = self.offsets[labels] if len(self.offsets) > 1 else self.offsets
        return np.asarray(inside @ self.matrix.T + own)

    @classmethod
    def examples(cls) -> list[Self]:
        """Every statistic, and one with a feature and a distance."""
        common: dict[str, Any] = {
            "epsilon": 1.0,
            "people": 1,
            "classes": 3,
            "centers": [0.0, 0.1],
            "scales": [0.5, 0.4],
            "clip": 2.0,
            "matrix": [[1.0, 0.0], [-0.5, 1.2]],
            "offsets": [[0.1, -0.2]],
            "limit": 1.4,
        }
        by_class = [[0.1, -0.2], [0.0, 0.3], [-0.4, 0.0]]
        weights = {"weights": [0.5, 1.0, 0.8]}
        theta = {"theta": [[0.2, 1.0, -0.5]], "reach": 1.5}
        by_score = {"theta": [[0.2, 1.0, -0.5], [0.0, -0.4, 0.3], [-0.1, 0.2, 0.6]], "reach": 1.5}
        return [
            cls(statistic="spread", **common),
            cls(statistic="products", **common | {"offsets": by_class}),
            cls(statistic="residual", **common | weights | theta),
            cls(statistic="classes", **common | weights | {"epsilon": 3.0, "offsets": by_class}),
            cls(statistic="residual", **common | weights | by_score),
            cls(statistic="cross", **common | {"weights": [0.5, 1.0], "reach": 1.5}),
            cls(statistic="residual", **common | weights | theta, folds=[0.2]),  # type: ignore[arg-type]
        ]


def _cut(vectors: FloatArray, limit: float) -> FloatArray:
    """Vectors, shortened to the limit if they are longer, and divided by it."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, limit))
