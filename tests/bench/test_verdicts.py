"""Whether a table agrees with the paper is decided by its numbers, not by hand."""

from __future__ import annotations

from typing import Any

import pytest

from dpfda.report.contents import Outcome
from dpfda_bench import catalog
from dpfda_bench.reproductions._p001_vectors import METHODS

RULES = ("as published", "corrected", "default")
CLAIMS = ("mr_below_weak", "ma_below_weak", "mrma_best_svm_cg")


def word(name: str, **parts: Any) -> str:
    return catalog.reproduction(name).verdict(Outcome(**parts)).word


def test_the_largest_difference_decides_on_tables() -> None:
    parts = {f"difference_{name}": 0.1 for name in ("Logistic", "SVM", "DWD", "CG")}
    for largest, wanted in ((1.0, "agrees"), (1.1, "differs")):
        figures = parts | {"largest_difference_points": largest}
        assert word("001-table-a1", figures=figures) == wanted


def test_two_numbers_beyond_chance_decide_on_tables_of_splits() -> None:
    figures = {f"difference_{method}": 3.0 for method in METHODS}
    figures["largest_difference_points"] = 3.0
    for beyond, wanted in ((0.0, "agrees"), (1.0, "agrees"), (2.0, "differs")):
        figures["beyond_a_point_and_three_errors"] = beyond
        for name in ("001-table-1", "001-table-2"):
            assert word(name, figures=figures) == wanted


def test_the_least_of_the_claims_decides_on_figure_2() -> None:
    held = {f"claims_{claim}": 1.0 for claim in CLAIMS}
    assert word("001-figure-2", figures=held) == "agrees"
    for claim in held:
        assert word("001-figure-2", figures=held | {claim: 0.7}) == "differs"


def test_sharing_must_help_two_learners_and_harm_none() -> None:
    gains = {"logistic": 5.0, "dwd": 5.0, "svm": 0.0, "cg": 0.0}
    figures = {f"gain_{name}_points": gain for name, gain in gains.items()}
    assert word("001-figure-3", figures=figures) == "agrees"
    for name, bad in (("logistic", 0.5), ("dwd", 0.5), ("svm", -1.0), ("cg", -1.0)):
        assert word("001-figure-3", figures=figures | {f"gain_{name}_points": bad}) == "differs"


def test_every_order_of_the_text_decides_on_allocations() -> None:
    gains = {"points_2_before_1_MA": 0.5, "points_3_before_2_MRMA": 0.1}
    assert word("001-figure-a4", figures=gains) == "agrees"
    assert word("001-figure-a4", figures=gains | {"points_2_before_1_MA": -0.1}) == "differs"
    held = {"large": 5.0, "small": 0.5, "gain": 10.0, "better": 0.1}
    assert word("001-table-a3", figures=held) == "agrees"
    for name, bad in (("large", 0.4), ("small", 6.0), ("gain", 0.5), ("better", -0.1)):
        assert word("001-table-a3", figures=held | {name: bad}) == "differs"


def test_only_cg_may_scatter() -> None:
    def rows(**spans: float) -> list[dict[str, Any]]:
        return [
            {"features": kind, "learner": name, "epsilon": epsilon, "mean": 50 - spans[name] / 20}
            | {"5 %": 50 - spans[name] / 2, "95 %": 50 + spans[name] / 2}
            for kind in ("Tanh", "MAN")
            for name in spans
            for epsilon in (0.1, 1.0, None)
        ]

    told = {"Logistic": 10.0, "SVM": 12.0, "DWD": 8.0, "CG": 80.0}
    for name in ("001-figure-a1", "001-figure-a2"):
        assert word(name, rows=rows(**told)) == "agrees"
        assert word(name, rows=rows(**told | {"SVM": 40.0})) == "differs"
        assert word(name, rows=rows(**told | {"CG": 50.0})) == "differs"
    assert word("001-figure-a2", rows=rows(**told | {"DWD": 20.0})) == "differs"


def test_other_data_are_never_compared() -> None:
    held = {"weak": 1.0, "pooled": 0.8, "majority": 0.0}
    assert word("001-figure-5", figures=held) == "agrees"
    assert word("001-figure-5", figures=held | {"pooled": 0.7}) == "differs"
    assert word("001-figure-4", figures=held) == "not comparable"


def test_a_method_must_be_ahead_in_most_settings() -> None:
    def rows(errors: list[float]) -> list[dict[str, Any]]:
        shared = {"data": "d", "panel": "epsilon", "train_share": 1.0, "delta": 1e-5}
        return [
            shared
            | {"form": "as published", "epsilon": place + 1.0, "true_epsilon": 2 * place + 2.0}
            | {"method": method, "mse": mse}
            for place, error in enumerate(errors)
            for method, mse in (("gaussian_fm", error), ("fm", 1.0), ("noisy_gradient", 2.0))
        ]

    assert word("002-figure-1", rows=rows([0.5, 0.5, 0.5, 1.5])) == "agrees"
    assert word("002-figure-1", rows=rows([0.5, 0.5, 1.5, 1.5])) == "differs"
    decided = catalog.reproduction("002-figure-1").verdict(Outcome(rows=rows([0.5])))
    assert "gaussian_fm is 2.0 to 2.0 times the claimed one" in decided.why


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("002-table-a1", "agrees"),
        ("002-figure-a1", "agrees"),
        ("002-figure-a2", "agrees"),
        ("002-theorem-1", "differs"),
    ],
)
def test_formulas_decide_at_once(name: str, wanted: str) -> None:
    module = catalog.reproduction(name)
    found = module.verdict(module.run())
    assert found.word == wanted
    assert found.why.endswith(".")


def test_printed_over_recomputed() -> None:
    row = {"mechanism": "piecewise", "printed": 1.0}
    for measured, wanted in ((0.85, "agrees"), (1.2, "agrees"), (0.7, "differs"), (1.4, "differs")):
        assert word("004-table-3", rows=[row | {"measured": measured}]) == wanted


def test_unknown_names_are_still_refused() -> None:
    from dpfda.errors import UnknownName

    with pytest.raises(UnknownName):
        catalog.reproduction("000-table-9")


def test_sentences_about_simulated_means_decide_one_by_one() -> None:
    row = {
        f"{k} {v}": 1.0 for k in ("FRL", "Bernstein", "ICLP-AR") for v in ("as run", "made sound")
    }
    row |= {"mean": "S-1", "ICLP-QR as run": 0.5, "ICLP-QR made sound": 0.6}
    rows = [row | {"figure": f} for f in "26789"]
    held = {
        "2_median_pss_over_pcv": 1.0, "2_median_pss_over_pcv_S-4": 2.0,
        "2_largest_pss_over_pcv": 1.5, "2_share_qr_best": 1.0, "6_share_qr_best": 1.0,
        "6_rank_correlation_with_2": 0.95, "2_misalignment": 0.2, "7_misalignment": 0.1,
        "8_median_factor_kernel": 1.05, "8_largest_factor_kernel": 1.5,
        "9_median_factor_kernel": 1.05, "9_largest_factor_kernel": 1.5,
    }  # fmt: skip
    for number in "126789":
        assert word(f"003-figure-{number}", figures=held, rows=rows) == "agrees"
    bad = {
        "1": {"2_median_pss_over_pcv": 1.3}, "2": {"2_share_qr_best": 0.8},
        "6": {"6_rank_correlation_with_2": 0.8}, "7": {"7_misalignment": 0.3},
        "8": {"8_median_factor_kernel": 1.2}, "9": {"9_median_factor_kernel": 1.2},
    }  # fmt: skip
    for number, values in bad.items():
        assert word(f"003-figure-{number}", figures=held | values, rows=rows) == "differs"


def test_figure_10_of_003_has_neither_numbers_nor_claims() -> None:
    figures = {"share_same_nearer": 0.5, "share_same_nearer_one_bandwidth": 0.8}
    assert word("003-figure-10", rows=[{}], figures=figures) == "not comparable"


def test_told_accuracies_decide_on_first_learners() -> None:
    figures = {"printed_numbers": 2.0, "median_difference_points": 1.0}
    for most, wanted in ((4.9, "agrees"), (5.1, "differs")):
        found = figures | {"largest_difference_points": most}
        assert word("004-figure-9", figures=found) == wanted
    held = {"accuracy_gain_points": 9.0, "accuracy": 71.0, "distance": 2.6}
    assert word("004-figure-3", figures=held) == "agrees"
    for bad in ({"accuracy_gain_points": -1.0}, {"accuracy": 60.0}, {"distance": 2.0}):
        assert word("004-figure-3", figures=held | bad) == "differs"


def test_every_printed_number_decides_on_table_2_of_003() -> None:
    figures = {
        "printed_numbers": 96.0, "within_1_percent": 85.0,
        "scans_eps1_qr_made_sound": 0.05, "scans_eps1_qr_as_run": 0.06,
    }  # fmt: skip
    for close, wanted in ((96.0, "agrees"), (95.0, "differs")):
        assert word("003-table-2", figures=figures | {"within_3_percent": close}) == wanted
