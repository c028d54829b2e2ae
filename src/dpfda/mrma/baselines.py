"""The methods MRMA is compared with, on one simulated study's people (methods §4)."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mrma.comparison import (
    People,
    Setting,
    histogram_rule,
    noisy_reports,
    pooled_members,
    pooled_rules,
    reference_rules,
)
from dpfda.mrma.decision_rules import Rule
from dpfda.mrma.designs import MRMADesign
from dpfda.mrma.training import learner_gram, named_learner
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan

_HISTOGRAM_SPLITS = 4
_MOST_CELLS = 1 << 20


def baseline_rules(
    features: FloatArray, numbers: IntArray, *, plan: StudyPlan, design: MRMADesign, seed: int
) -> dict[str, Rule]:
    """Voting, Averaging, All data, Histogram, majority class and non-private, all fitted.

    Simulations only: each method would cost everybody another ε, and the last two use no noise.

    Args:
        features: encoded curves.
        numbers: label numbers 0 or 1.
        plan: the study MRMA ran.
        design: its design.
        seed: of the simulated noise.
    """
    source = SimulationSource(np.random.SeedSequence([seed, 2]))
    people = People.plain(features[None], np.where(numbers == 1, 1.0, -1.0)[None])
    setting = Setting(
        epsilon=plan.epsilon,
        learner=named_learner(design.learner, design.learner_parameters),
        n_classifiers=min(design.n_classifiers, len(numbers) // 2),
        randomizer=design.randomizer,
        label_share=design.label_share,
        gram=learner_gram(plan),
        protects=plan.protects,
    )
    reports = noisy_reports(setting, people, source)
    rules = pooled_rules(setting, *pooled_members(setting, *reports))
    if _HISTOGRAM_SPLITS ** features.shape[1] <= _MOST_CELLS:
        rules["Histogram"] = histogram_rule(
            people, epsilon=plan.epsilon, splits=_HISTOGRAM_SPLITS, handicap=1.0, source=source
        )
    return rules | reference_rules(setting, people)
