"""A question study under way: what is concluded from the replies, and what is kept of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.protocol.estimate import Estimate, accuracy_estimate
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel
from dpfda.protocol.temperature import Temperature
from dpfda.questions import estimation, sizes
from dpfda.questions.asking import AskedProgress
from dpfda.questions.balance import (
    Belief,
    always_the_same,
    balance_of,
    cautious,
    intercept_of,
    one_against_the_rest,
    sensitivity,
)
from dpfda.questions.ranging import RANGING


class QuestionProgress(AskedProgress, name="questions"):
    """A question study under way. All it keeps is sums and the estimates made of them."""

    kept = (
        "scales",
        "centers",
        "center_variance",
        "slopes",
        "slope_variance",
        "beliefs",
        "evidence",
        "damping",
        "constant_share",
        "temper",
    )

    @property
    def beliefs(self) -> FloatArray:
        """About each score's intercept: weights, means and variances, shape (m, 3, 2)."""
        return np.array([(one.weights, one.means, one.variances) for one in self.intercepts])

    @beliefs.setter
    def beliefs(self, stored: FloatArray) -> None:
        self.intercepts = [Belief(*parts) for parts in stored]

    @property
    def temper(self) -> FloatArray:
        """What is believed of the scores' factor."""
        return np.array(self.temperature)

    @temper.setter
    def temper(self, stored: FloatArray) -> None:
        self.temperature = Temperature(*stored.tolist())

    # -- what is concluded ----------------------------------------------------------------------

    def _learn(self) -> None:
        learn = {
            **dict.fromkeys(RANGING, self._learn_range),
            "center": self._learn_center,
            "width": self._learn_width,
            "direction": self._learn_direction,
            "intercept": self._learn_intercept,
            "temperature": self._learn_temperature,
            "evaluation": self._learn_error,
        }
        learn[self.kind]()
        following = [phase.kind for phase in self.phases[self.phase + 1 : self.phase + 2]]
        if self.kind != "direction" or following != ["direction"]:  # its batches add up
            self._sums = {}

    def _learn_range(self) -> None:
        if self.kind in self._sums:
            self.ranging.learn(self.kind, self._sums[self.kind])
            found = self.ranging.found()
            self._place(*(part[: self.own] for part in found))

    def _learn_center(self) -> None:
        own = slice(self.own)
        centers, doubt = estimation.shift_center(
            self.centers[own],
            self.center_variance[own],
            total=self._sum("total", 1, self.d + 1).sum(axis=0)[own],
            asked=self._sum("asked", 1, self.d + 1).sum(axis=0)[own],
            width=self._center_width,
            alpha=self._alpha(self.k),
            located=np.isin(np.arange(self.own), self.ranging.levels) & self.design.range_is_loose,
        )
        self._place(centers, self.scales[own], doubt)

    def _learn_width(self) -> None:
        if "width" in self._sums:
            self.widths.counts += self._sums["width"]
            own = slice(self.own)
            self._place(self.centers[own], self.scales[own], self.center_variance[own])

    def _learn_direction(self) -> None:
        m, d = self.n_scores, self.d
        alpha = self._alpha(self.k)
        total, asked = self._sum("total", m, d + 1), self._sum("asked", m, d + 1)
        pairs = [self._sum(name, m, d + 1, d + 1) for name in ("pair_total", "pair_asked")]
        balance = self._balance(total[0, d], asked[0, d], alpha)
        self.guessing = self._less_frequent(total[0, d], int(asked[0, d]), alpha)
        self.correlations = []
        for score in range(m):
            found = estimation.direction(
                total=total[score, :d],
                asked=asked[score, :d],
                pair_total=pairs[0][score, :d, :d],
                pair_asked=pairs[1][score, :d, :d],
                alpha=alpha,
                whiten=self.k > 1,
                ordered=bool(self.design.ordered),
                runs=self.d // self.own,
                balance=balance.mean if m == 1 else None,
            )
            self.slopes[score], self.slope_variance[score] = found.slopes, found.variances
            self.evidence[score], self.damping[score] = found.evidence, found.damping
            self.correlations.append(
                [_correlation(r, n, alpha) for r, n in zip(found.raw, asked[score], strict=False)]
            )
            doubt = 0.0
            if any(phase.kind == "center" and phase.people for phase in self.phases):
                doubt = float(found.slopes**2 @ (self.center_variance / self.scales**2))
            self.intercepts[score] = (
                intercept_of(balance, found.slopes, doubt=doubt)
                if m == 1
                else one_against_the_rest(doubt=doubt)
            )
        heard = float(asked[0, d]) * alpha**2
        self.constant_share = np.array(self._label_share(float(balance.weights[1]), heard, alpha))

    def _label_share(self, unbalanced: float, heard: float, alpha: float) -> float:
        """Of the next people asked about directions, who are asked for their label instead."""
        calm, alarmed = self._constant
        usual = float(calm + (alarmed - calm) * unbalanced)
        later = [phase for phase in self.phases[self.phase + 1 :] if phase.kind == "direction"]
        batches = sum(phase.kind == "direction" for phase in self.phases)
        if not self._labels_wanted or len(later) > sizes.LATE * batches:
            return usual
        late = sizes.late_share(
            self._labels_wanted - heard,
            alpha**2 * sum(phase.people for phase in later),
            shown=self._shown,
            caution=self._caution,
        )
        return max(usual, late)

    @property
    def _shown(self) -> float:
        """How likely it is that any feature goes with the label, if it was as likely as not."""
        return estimation.evidence_at_even_odds(
            float(self.evidence[0]), ordered=bool(self.design.ordered), whiten=self.k > 1
        )

    def _balance(self, total: float, asked: float, alpha: float) -> Belief:
        """What is known of the classes' shares; of one class against the rest nothing is asked."""
        return balance_of(
            self.design.class_share,
            answer=total / max(asked, 1) / alpha,
            precision=asked * alpha**2,
        )

    def _less_frequent(self, total: float, asked: int, alpha: float) -> Estimate | None:
        """The share of the less frequent of two labels: public, or as the constant stump tells."""
        if self.n_scores > 1 or (self.design.class_share is None and not asked):
            return None
        if self.design.class_share is not None:
            return Estimate(min(self.design.class_share, 1 - self.design.class_share), 0.0, 0)
        told = _correlation(total / asked / alpha, asked, alpha)
        share = (1 - min(abs(told.value), 1.0)) / 2
        return Estimate(share, told.standard_error / 2, asked)

    def _learn_intercept(self) -> None:
        total, people = self._sum("total", self.n_scores), self._sum("people", self.n_scores)
        for score, belief in enumerate(self.intercepts):
            if people[score]:
                value, noise = estimation.intercept_reading(
                    belief.mean,
                    total=float(total[score]),
                    people=int(people[score]),
                    questions=self.intercept_k,
                    reaction=sensitivity(belief.mean, self.slopes[score]),
                    alpha=self._alpha(self.intercept_k),
                )
                self.intercepts[score] = belief.told(value, noise=noise)

    def _learn_temperature(self) -> None:
        people = int(self._sum("people", 1)[0])
        total = float(self._sum("total", 1)[0])
        self.temperature = self.temperature.told(total, people=people, plan=self.plan)

    def _learn_error(self) -> None:
        people = int(self._sum("people", 1)[0])
        if people:
            self.error_estimate = accuracy_estimate(
                total=float(self._sum("total", 1)[0]), people=people, epsilon=self.plan.epsilon
            ).complement()

    # -- results --------------------------------------------------------------------------------

    def findings(self) -> Findings:
        """Middles (the public one where nobody was asked), stumps, intercepts, error."""
        helped = dict.fromkeys((phase.kind for phase in self.phases), 0)
        for phase in self.phases:
            helped[phase.kind] += phase.people
        placed = [helped["center"]] * self.own + [helped.get("width", 0)] * len(self.folds)
        return Findings(
            classes=self.plan.classes,
            phases=self.phases,
            learnt="agreement",
            title="is this stump right?",
            features=self.correlations,
            centers=[
                Estimate(float(c), float(v**0.5), people)
                for c, v, people in zip(self.centers, self.center_variance, placed, strict=True)
            ],
            intercepts=[
                Estimate(belief.mean, belief.variance**0.5, helped["intercept"])
                for belief in self.intercepts
            ],
            error=self.error_estimate,
            folded=len(self.folds),
            guessing=self.guessing,
            **self._judged(),
            covariances=[np.diag(row) for row in self._coefficient_variances()],
        )

    def _coefficient_variances(self) -> FloatArray:
        variances = self.model.variances
        assert variances is not None
        return variances[:, 1:]

    def _judged(self) -> dict[str, Any]:
        """What a verdict on the model goes by."""
        if self.n_scores > 1 or not any(map(len, self.correlations)):
            return {}
        rule = self.model
        constant = always_the_same(float(rule.intercept[0]), np.asarray(rule.coefficients[0]))
        return {"evidence": self._shown, "constant": constant}

    def _leaning(self, evidence: float) -> float:
        """How far a rule goes by its slopes.

        Where few people would lose by them if they find nothing, less far than the evidence says.
        """
        if self.k > 1:
            return 1.0
        told = float(evidence) * (self._caution.leaning if self._labels_wanted else 1.0)
        return told / (told + 1 - float(evidence))

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        shape = (self.n_scores, self.d)
        rules = [
            cautious(belief, slopes, evidence=self._leaning(evidence))
            for belief, slopes, evidence in zip(
                self.intercepts, self.slopes, self.evidence, strict=True
            )
        ]
        intercept, scale = np.array(rules).T
        variances = np.column_stack(
            [[belief.variance for belief in self.intercepts], self.slope_variance]
        )
        return CurveModel(
            intercept=intercept,
            coefficients=self.slopes * scale[:, None],
            centers=np.broadcast_to(self.centers, shape),
            scales=np.broadcast_to(self.scales, shape),
            clipped=True,
            variances=variances * scale[:, None] ** 2,
            damping=float(np.mean(self.damping)) * self.temperature.factor,
            folds=self.folds,
            **self.plan.stamp,
        )

    def state(self) -> dict[str, Any]:
        """Phase, sums and estimates."""
        return super().state() | {
            "sums": {name: value.tolist() for name, value in self._sums.items()},
            "ranging": self.ranging.state() if self.kind in RANGING else None,
            "widths": self.widths.counts.tolist() if self.kind == "width" else None,
            "correlations": [[e.to_dict() for e in row] for row in self.correlations],
            "error_estimate": self.error_estimate and self.error_estimate.to_dict(),
            "guessing": self.guessing and self.guessing.to_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        self._sums = {name: np.asarray(value) for name, value in state["sums"].items()}
        if state["ranging"] is not None:
            self.ranging.restore(state["ranging"])
        if state["widths"] is not None:
            self.widths.counts = np.asarray(state["widths"])
        self.correlations = [[Estimate(**e) for e in row] for row in state["correlations"]]
        error, guessing = state["error_estimate"], state["guessing"]
        self.error_estimate = Estimate(**error) if error else None
        self.guessing = Estimate(**guessing) if guessing else None


def _correlation(raw: float, asked: float, alpha: float) -> Estimate:
    """r_j with its standard error, the response's noise included."""
    if not asked:
        return Estimate(0.0, float("inf"), 0)
    spread = max(1 / alpha**2 - raw**2, 0.0) / asked
    return Estimate(float(raw), float(spread**0.5), int(asked))
