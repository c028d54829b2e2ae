"""The plans among the test vectors of the wire format: of studies, and those to be refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from dpfda import CurveEncoder, plan_study
from dpfda.protocol import StudyPlan
from dpfda.protocol.plan import canonical

Case = dict[str, Any]


def plans() -> dict[str, StudyPlan]:
    """A study of each design that a person may meet."""
    waves = CurveEncoder("cosine", n_basis=6, feature_ranges=(-2, 2), domain_range=(0, 24))
    table = CurveEncoder("identity", feature_ranges=[(0, 10), (-1, 1), (0, 1)])
    spline = CurveEncoder("bspline", n_basis=4, scale=2.0)
    two: Any = {"classes": ("no", "yes")}
    return {
        "answers": StudyPlan(
            epsilon=2.0, n_people=3000, encoder=waves, design={"name": "answers",
            "evaluation_share": 0.1, "temperature_share": 0.1, "class_share": 0.3},
            title="Puls über den Tag", **two),
        "answers of spread": StudyPlan(
            epsilon=2.0, n_people=3000, encoder=waves, design={"name": "answers",
            "evaluation_share": 0.1, "temperature_share": 0.1, "spread_differs": True}, **two),
        "three classes": StudyPlan(
            epsilon=1.0, n_people=900, encoder=waves, classes=(0, 1, 2.5), seed=2**53 - 1,
            design={"name": "vectors", "evaluation_share": 0.25}),
        "moments": StudyPlan(
            epsilon=1.0, n_people=500, encoder=spline, design={"name": "moments"}, **two),
        "moments of classes": StudyPlan(
            epsilon=2.0, n_people=500, encoder=spline, classes=("a", "b", "c"),
            design={"name": "moments", "mechanism": "laplace"}),
        "mrma": StudyPlan(
            epsilon=4.0, n_people=600, encoder=spline, unit="heart",
            design={"name": "mrma", "n_classifiers": 9, "mechanism": "hybrid"}, **two),
        "labels": StudyPlan(
            epsilon=0.5, n_people=200, encoder=table, protects="labels",
            design={"name": "noisy_labels"}, **two),
        "vectors": StudyPlan(
            epsilon=1.0, n_people=4000, encoder=table, design={"name": "vectors",
            "evaluation_share": 0.1, "temperature_share": 0.1, "class_share": 0.3}, **two),
        "vectors of classes": StudyPlan(
            epsilon=3.0, n_people=4000, encoder=table, classes=("a", "b", "c"),
            design={"name": "vectors"}),
        "vectors with distances": StudyPlan(
            epsilon=1.0, n_people=500, encoder=table,
            design={"name": "vectors", "spread_differs": True}, **two),
        "vectors of numbers": StudyPlan(
            epsilon=1.0, n_people=4000, encoder=table, target_range=(0, 100),
            design={"name": "vector_numbers", "evaluation_share": 0.1}),
        "channels": plan_study(
            2000, 2.0, classes=("no", "yes"), value_range=[(0, 1), (-5, 5)]),
        "rising curves": StudyPlan(
            epsilon=2.0, n_people=300, encoder=CurveEncoder("smooth", n_basis=8, scale=3.0),
            design={"name": "answers", "center_known": True}, **two),
        "three averages": StudyPlan(
            epsilon=2.0, n_people=300, encoder=spline, classes=(True, False, "unknown"),
            design={"name": "mrma", "n_classifiers": 4, "label_share": 0.25, "verdict_share": 0.5,
            "classifiers_per_person": 2}),
        "public labels": StudyPlan(
            epsilon=1.0, n_people=300, encoder=spline, protects="features",
            design={"name": "mrma_stream", "n_classifiers": 4, "new_classifiers": 2}, **two),
        "candidates": StudyPlan(
            epsilon=1.0, n_people=90, encoder=table, design={"name": "exchange",
            "intercepts": [0.0, 0.1], "coefficients": [[1, 0, 0], [0, 1, -1]],
            "evaluation_share": 0.2}, title="ü" * 200, **two),
        "candidates of classes": StudyPlan(
            epsilon=1.0, n_people=90, encoder=table, classes=("a", "b", "c"), design={
            "name": "exchange", "intercepts": [0.0, 0.1],
            "coefficients": [[1, 0, 0], [0, 1, -1]], "halves": [[0], [2]]}),
        "a stream of classes": StudyPlan(
            epsilon=1.0, n_people=300, encoder=spline, classes=("a", "b", "c", "d"),
            design={"name": "mrma_stream", "n_classifiers": 6, "new_classifiers": 3}),
        "with information": StudyPlan(
            epsilon=1.0, n_people=500, encoder=spline, design={"name": "moments"},
            information={"version": "2, 2026-11-16", "institution": "Institut für Schlaf",
            "contact": "schlaf@example.org", "purpose": "Sleep “and” coffee",
            "officer": "privacy@example.org"}, **two),
    }  # fmt: skip


def refused_plans() -> list[Case]:
    """Plans that nobody can take part in, each with the hash that it would have."""
    known = {name: json.loads(canonical(plan.to_dict())) for name, plan in plans().items()}
    found = []
    for what, name, path, value in [*_odd_plans(), *_odd_parts()]:
        plan = json.loads(json.dumps(known[name]))
        place: Any = plan
        for step in path[:-1]:
            place = place[step]
        if value is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        hashed = hashlib.sha256(canonical(plan)).hexdigest()
        assert _refuses(plan, hashed), (what, name)
        found.append({"what": what, "plan": plan, "hash": hashed})
    return found


def _refuses(plan: Any, hashed: str) -> bool:
    """What a device does with the plan that a collector sent for a hash."""
    try:
        found = StudyPlan.from_dict(plan)
        return not found.asks or found.hash != hashed
    except Exception:  # as devices do: whatever a hostile collector sent
        return True


Odd = Iterator[tuple[str, str, tuple[str | int, ...], Any]]


def _odd_plans() -> Odd:
    """What is wrong, with which plan, where, and what stands there."""
    yield "a field nobody knows", "answers", ("backdoor",), 1
    for name in plans()["answers"].to_dict():
        yield f"no {name}", "answers", (name,), ...
    wrong: dict[str, list[Any]] = {
        "epsilon": [0, -1, "1", None, True],
        "n_people": [0, 1.5, 2e9, "9"],
        "classes": [
            ["no"],
            [],
            ["no", "no"],
            [1, True],
            "no",
            ["no", None],
            ["no", "a\nb"],
            ["", []],
        ],
        "protects": ["nothing", None, "Both"],
        "unit": ["", None, "x" * 101, "a\tb"],
        "title": [None, "x" * 201, "a\u2028b"],
        "seed": [-1, 0.5, None],
        "information": [{}, None, "words", {"version": "1"}],
        "target_range": [[0, 1], [1, 0]],
        "design": [{}, {"name": "samme"}, {"name": "none"}, {"name": 1}, [], None],
        "encoder": [{}, None, []],
    }
    for name, values in wrong.items():
        for value in values:
            yield f"{name} {json.dumps(value)[:30]}", "answers", (name,), value
    yield "a number, and labels", "vectors of numbers", ("classes",), ["a", "b"]
    for name, words in (("purpose", ...), ("purpose", ""), ("contact", "a\nb"), ("more", "words"),
        ("officer", 1), ("officer", "x" * 2001)):  # fmt: skip
        yield f"information of {name}", "with information", ("information", name), words
    yield "neither a number nor labels", "vectors of numbers", ("target_range",), None
    yield "a range backwards", "vectors of numbers", ("target_range",), [5, 5]
    yield "labels in clear", "labels", ("protects",), "both"
    yield "three of two", "candidates", ("classes",), ["a", "b", "c"]
    yield "halves of two", "candidates", ("design", "halves"), [[1], [1]]
    odd: tuple[Any, ...] = (None, [[1]], [[1, 2], [1]], [[3], [1]], [[], []])
    for halves in odd:
        yield f"halves {halves}", "candidates of classes", ("design", "halves"), halves


def _odd_parts() -> Odd:
    basis, rescale = ("encoder", "basis"), ("encoder", "rescale")
    yield "an encoder's secret", "answers", ("encoder", "more"), 1
    for name, plan, values in (
        ("n_basis", "answers", [0, 2.5, -1, None]), ("n_basis", "rising curves", [65]),
        ("n_basis", "moments", [3]), ("knots", "moments", [[0.5], [2]]), ("order", "moments", [0]),
        ("domain_range", "answers", [[1, 0], [0], [0, None], 3]),
        ("name", "answers", ["wavelet", "__proto__", "identity", None]),
        ("order", "answers", [4]),
        ("parts", "channels", [[], [{"name": "identity", "n_basis": 1}]]),
    ):  # fmt: skip
        for value in values:
            yield f"{name} {json.dumps(value)}", plan, (*basis, name), value
    yield "channels on other domains", "channels", (*basis, "parts", 1, "domain_range"), [0, 2]
    for name, value in (("scale", 0), ("scale", [1, 1]), ("center", "0"), ("name", "none")):
        yield f"{name} {json.dumps(value)}", "answers", (*rescale, name), value
    yield "a width of its own", "answers", (*rescale, "width"), 1
    design: dict[str, list[tuple[str, Any]]] = {
        "answers": [
            ("evaluation_share", 1), ("temperature_share", 0.9), ("n_features", 0), ("more", 1),
            ("n_features", 7), ("class_share", 1.5), ("spread_differs", 1.5), ("scales", [0.1] * 6),
        ],
        "three classes": [("class_share", 0.5)],
        "moments": [("mechanism", "none")],
        "mrma": [
            ("training_share", 1), ("mechanism", "none"), ("cutoff", 0.2), ("n_classifiers", 0),
            ("classifiers_per_person", 10),
        ],
        "public labels": [("new_classifiers", 5), ("memory", 1)],
        "candidates": [("intercepts", [0.0]), ("coefficients", [[1], [2]]), ("intercepts", ...)],
        "vectors of numbers": [("temperature_share", 0.1), ("class_share", 0.5)],
    }  # fmt: skip
    for plan, given in design.items():
        for name, value in given:
            told = "left out" if value is ... else json.dumps(value)
            yield f"{name} {told}", plan, ("design", name), value
    yield "answers of three classes", "three classes", ("design",), {"name": "answers"}
