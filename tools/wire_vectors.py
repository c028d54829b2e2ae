"""Write the test vectors of the wire format: ``python tools/wire_vectors.py``.

Words are random, but for a few planted ones at the edges of a draw; each file says what this
package makes of them. Whoever changes what is drawn writes them anew and says so.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from wire_plans import Case, plans, refused_plans
from wire_refusals import refusals

from dpfda import CurveEncoder
from dpfda.curves import CustomBasis
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.additive import Laplace
from dpfda.mechanisms.cap_index import CodewordReport
from dpfda.mechanisms.piecewise import Duchi, Piecewise
from dpfda.mechanisms.randomized_response import QuestionResponse, RandomizedResponse
from dpfda.noise import SimulationSource
from dpfda.noise.discrete import _geometric_digits
from dpfda.protocol import StudyPlan
from dpfda.protocol.person import encode_people, one_curve
from dpfda.protocol.plan import canonical, number_text
from dpfda.protocol.task import Task

FOLDER = Path(__file__).resolve().parent.parent / "clients" / "vectors"


class Recorded:
    """A source that remembers its words; the first may be planted."""

    sampler = "simulation"

    def __init__(self, seed: int, *planted: int) -> None:
        self._inner, self._planted = SimulationSource(seed), list(planted)
        self.given: list[str] = []

    def words(self, count: int) -> Any:
        """The next words."""
        drawn = self._inner.words(count).copy()
        planted = self._planted[:count]
        drawn[: len(planted)] = np.array(planted, dtype=np.uint64)
        self._planted = self._planted[count:]
        self.given += [f"{int(word):016x}" for word in drawn]
        return drawn


def numbers() -> list[Case]:
    """Doubles, by their bits, and how they are written."""
    odd = [0.0, -0.0, 1.0, -1.5, 0.1, 1e20, 1e21, 123456789012345680000.0, 1e-6, 1e-7, 5e-324]
    odd += [1.7976931348623157e308, 2.0**53, 0.000001234, 333333333.33333325, 1 / 3, 1e23]
    return [{"bits": struct.pack(">d", value).hex(), "text": number_text(value)} for value in odd]


def mechanisms() -> list[Case]:
    """Every draw that a person may meet, at edges and anywhere."""
    signs = [[1.0], [-1.0]]
    made: list[tuple[Case, list[list[float]]]] = [
        *(({"name": "randomized_response", "epsilon": e}, signs) for e in (1e-6, 0.1, 1.0, 30.0)),
        *(
            ({"name": "question_response", "epsilon": e, "questions": k}, [[1.0, -1.0] * k])
            for e, k in ((0.5, 1), (2.0, 2), (5.0, 7), (1.0, 30))
        ),
        *(
            ({"name": name, "epsilon": e, "dimension": d}, [_points(d), [0.0] * d, [-1.0] * d])
            for name in ("laplace", "piecewise", "hybrid", "duchi")
            for e, d in ((1.0, 1), (0.5, 4), (5.0, 4), (6.0, 5))
        ),
        *(
            ({"name": "cap_index", "epsilon": e, "dimension": d, "codewords": b}, _vectors(d))
            for e, d, b in ((1.0, 1, 16), (3.0, 5, 32), (1.0, 66, 64))
        ),
        *(
            (
                {
                    "name": "class_index",
                    "epsilon": 2.0,
                    "dimension": 3,
                    "codewords": 16,
                    "classes": 5,
                    "buckets": buckets,
                },
                [[c, *row] for c, row in zip((4.0, 0.0, 2.0), _vectors(3), strict=True)],
            )
            for buckets in (1, 2, 5)
        ),
    ]
    return [_drawn(known, values, seed) for seed, (known, values) in enumerate(made)]


def _points(d: int) -> list[float]:
    return np.round(np.sin(np.arange(1, d + 1)), 3).tolist()


def _vectors(d: int) -> list[list[float]]:
    return [[round(x / (d + 1), 3) for x in _points(d)], [0.0] * d, [-1.0] + [0.0] * (d - 1)]


def _drawn(known: Case, values: list[list[float]], seed: int) -> Case:
    mechanism = Mechanism.from_dict(known)
    width = known.get("questions", known.get("dimension", 1)) + ("classes" in known)
    anywhere = [(row, words) for row, words in enumerate([(), (), (0,), (2**64 - 1,)])]
    draws = []
    for place, (number, first) in enumerate([*_planted(mechanism, values), *anywhere]):
        row = values[number % len(values)][:width]
        source = Recorded(100 * seed + place, *first)
        scalar = known["name"] == "randomized_response"
        given = np.array(row) if scalar else np.array([row])
        report = np.ravel(mechanism.randomize(given, source))
        draws.append({"value": row, "words": source.given, "report": report.tolist()})
    return {"mechanism": mechanism.to_dict(), "draws": draws}


Planted = Iterator[tuple[int, tuple[int, ...]]]


def _planted(mechanism: Any, values: list[list[float]]) -> Planted:
    """Words at the edges of a draw, each with the number of the value that it is an edge of."""
    match mechanism:
        case RandomizedResponse():
            yield from ((row, (mechanism._keep - row,)) for row in (0, 1))
        case QuestionResponse():
            extra, total = mechanism._weights[1], mechanism._total
            rejected = (1 << 64) - (1 << 64) % total
            yield from ((0, (word,)) for word in (extra - 1, extra, total - 1, total, rejected))
        case Laplace():  # words that need further ones; a last digit beyond its table; zeros
            lowest = _geometric_digits(mechanism._steps)[0]
            edge, other = int(lowest._low[100]), int(lowest._low[3])
            yield 0, (edge, *[5] * (2 * mechanism.dimension), 2**64 - 1)
            yield 0, (other, other)
            none = (0,) * (3 * mechanism.dimension)
            yield from ((1, (*none, 7, word)) for word in (0, 2**64 - 1))
        case Piecewise() if mechanism.sampled == mechanism.dimension:
            scalar: Any = mechanism._scalar
            (_, low), likely = scalar.weights, scalar.window * scalar.weights[0]
            for row, (first, *_) in enumerate(values):
                ahead = round(first * 2**20) + 2**20  # how many reports lie before the window
                edges = {likely - 1, likely, likely + low * ahead, likely + low * ahead - 1}
                yield from ((row, (edge,)) for edge in sorted(edges))
        case Duchi():  # a corner on the wrong side, with a coin that just lets it pass, or not
            ups = (0,) * mechanism.dimension
            yield from ((0, (*ups, 0, coin)) for coin in (2**30 - 1, 2**30))
        case CodewordReport():
            for row, value in enumerate(values):
                length = round(float(np.linalg.norm(value[-mechanism.dimension :])) * 2**20)
                yield from ((row, (2**20 + length - less,)) for less in (0, 1))


def answers() -> list[Case]:
    """Every task a person may be asked, and a reply to it."""
    found = []
    generator = np.random.default_rng(0)
    for kind, member in Task.members().items():
        if not member.__module__.startswith("dpfda.protocol.tasks"):
            continue
        for task in member.examples():
            for place in range(4):
                z, y = task.trial(generator)
                features, label = np.round(z[0], 3).tolist(), int(y[0])
                if place == 2:  # on a threshold, which is not above it
                    features = _on_thresholds(task, features)
                elif place == 3:  # outside the box, or nowhere
                    features = [1.7, float("nan"), -3.0][: len(features)]
                source = Recorded(len(found), *((0,) if place else ()))
                told = json.loads(json.dumps(features), parse_constant=str)
                sent = task.answer((np.array([features]), np.array([label])), source)
                found.append(
                    {
                        "task": json.loads(json.dumps(task.to_dict())),
                        "features": told,
                        "label": label,
                        "words": source.given,
                        "values": sent.values[0].tolist(),
                    }
                )
        assert kind
    return found


def _on_thresholds(task: Any, features: list[float]) -> list[float]:
    found = list(features)
    if task.name == "stump":
        for place, threshold in zip(
            task.coordinates[0].ravel(), np.ravel(task.thresholds[0]), strict=False
        ):
            folds = getattr(task, "folds", ())
            if place < (len(folds) or len(found)):
                found[place] = float(threshold)
            else:  # as far from the fold
                found[place - len(folds)] = float(folds[place - len(folds)] + threshold)
    return found


def encoders() -> list[Case]:
    """Curves and rows, and what becomes of them."""
    nan = float("nan")
    day = {"domain_range": (0, 24)}
    lines = CustomBasis(points=(0, 1, 4), values=((1, 0), (0, 1), (1, 0.5)))
    made: list[tuple[CurveEncoder, list[Any]]] = [
        (CurveEncoder("cosine", n_basis=4, feature_ranges=(-3, 3)), [
            (None, [0.0, 1.0, 2.0, 1.5, 0.5]),
            (None, [0.2, nan, 2.0, nan, 0.5, 1.0]),
            ([0.0, 0.31, 0.5, 0.77, 1.0], [1.0, 2.0, 0.5, -1.0, 0.0]),
            ([0.0, 0.5, 1.5, 1.0], [1.0, 2.0, 9.0, 3.0]),
            (None, [0.7]),
            ([0.0, 0.0, 1.0, 1.0, 0.0], [1.0, 2.0, 0.5, 0.7, 0.0]),
            (None, [1.0, float("inf"), 2.0, 3.0, 4.0]),
            (None, [nan, nan]),
            (None, [1e300, -1e300, 1e308, 1e308, -1e308, 3.0]),
        ]),
        (CurveEncoder("fourier", n_basis=5, scale=2.0, **day), [
            ([0, 3, 6, 9, 12, 15, 18, 21, 24], [60, 55, 58, 70, 80, 82, 75, 68, 61]),
        ]),
        (CurveEncoder("bspline", n_basis=5, rescale="max_abs"), [
            (None, [0.0, 0.1, 0.5, 0.9, 1.0, 0.2, 0.1]), (None, [0.0] * 6),
        ]),
        (CurveEncoder("bspline", knots=(0.2, 0.9), order=3, rescale="clip"), [
            ([0.05, 0.2, 0.3, 0.6, 0.9, 1.0], [0.1, 0.4, 0.3, -0.2, 0.0, 0.9]),
        ]),
        (CurveEncoder("identity", feature_ranges=[(20, 80), (0, 200)]), [
            (None, [50, 50]), (None, [nan, 300]), (None, [1.0]),
        ]),
        (CurveEncoder("identity", feature_ranges={"age": (20, 80), "sex": ["f", "m"], 7: (0, 1)}), [
            (None, [50, "m", 0.25]), (None, ["65", "f", 9]), (None, [None, "x", nan]),
            (None, ["old", "", True]), (None, [-1e9, "m", float("inf")]),
        ]),
        (CurveEncoder.side_by_side([CurveEncoder("cosine", n_basis=2)] * 2), [
            (None, [[0.0, 1.0], [0.5, 0.2], [1.0, nan]]),
        ]),
        (CurveEncoder.side_by_side([
            CurveEncoder("smooth", n_basis=3, feature_ranges=(-2, 2), **day),
            CurveEncoder("bspline", n_basis=4, feature_ranges=(0, 9), **day),
            CurveEncoder("cosine", n_basis=1, feature_ranges=(0, 1), **day),
        ]), [
            (
                [0, 5, 6, 11.5, 20, 30],
                [[1, 2, 3], [0, nan, 1], [2, 2, nan], [nan, 1, 0], [1, 5, 2], [9, 9, 9]],
            ),
            (None, [[1, 2, nan], [0, 3, nan], [2, 2, nan]]),
            (None, [[1, float("inf"), 0.1], [0, 3, 0.2], [2, 2, 0.3]]),
            (None, [[1, 2], [0, 3]]),
        ]),
        (CurveEncoder("smooth", n_basis=7, feature_ranges=(-2, 2), **day), [
            ([0, 3, 6, 9, 12, 15, 18, 21, 24], [0.1, 0.4, 0.3, 0.9, 1.2, 1.1, 1.5, 1.9, 2.2]),
            (None, [0.1, 0.2, nan, 0.9]),
        ]),
        (CurveEncoder("smooth", n_basis=64, scale=0.1), [(None, _points(200))]),
        (CurveEncoder(lines, rescale="clip"), [
            ([0, 0.5, 1, 2, 4, 5], [0.3, 0.2, nan, 0.7, 0.4, 9.0]),
        ]),
    ]  # fmt: skip
    found = []
    for encoder, curves in made:
        seen = []
        for points, values in curves:
            curve = values if points is None else (np.array(points), np.array(values, dtype=float))
            if encoder.table is not None:  # a row: its cells in the order of the public columns
                curve = dict(zip((c.key for c in encoder.table.columns), values, strict=True))
            plan = StudyPlan(
                epsilon=1.0, n_people=1, encoder=encoder, classes=(0, 1), design={"name": "moments"}
            )
            batch = one_curve(curve, channels=encoder.channels)
            z, _ = encode_people(plan, batch, [0])
            said = json.loads(json.dumps(values, allow_nan=True), parse_constant=str)
            seen.append({"points": points, "values": said, "features": z[0].tolist()})
        found.append({"encoder": json.loads(json.dumps(encoder.to_dict())), "curves": seen})
    return found


def main() -> None:
    """Write all of them."""
    made = plans()
    hashes = {
        name: {"plan": json.loads(canonical(plan.to_dict())), "hash": plan.hash}
        for name, plan in made.items()
    }
    files: dict[str, Any] = {
        "numbers": numbers(),
        "plans": hashes,
        "refused_plans": refused_plans(),
        "refused": refusals(),
        "mechanisms": mechanisms(),
        "tasks": answers(),
        "encoder": {"tolerance": 1e-9, "cases": encoders()},
    }
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        path = FOLDER / f"{name}.json"
        path.write_text(text.replace('},{"', '},\n{"') + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
