"""A forecast in words: its conclusion, the consent text, and the commands to run."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from dpfda._version import __version__
from dpfda.local.recipe import in_words
from dpfda.mechanisms.randomized_response import QuestionResponse
from dpfda.planning.forecast import Forecast
from dpfda.protocol.plan import StudyPlan

_LEAST = 0.1  # smallest useful gain, as a share of the gain without privacy
_FEWEST = 10.0  # smallest useful N_eff: the standard error of a share is then 16 points
_SURE = 0.95  # share of studies better than guessing from which a study is said to work
_APART = 0.03  # difference between simulation and theory that is mentioned


def verdict(found: Forecast) -> str:
    """Whether the study can work, in one sentence.

    Examples:
        >>> from dpfda.planning.forecast import forecast
        >>> found = forecast(
        ...     40, 1.0, value_range=(-1, 1), classes=("no", "yes"), family="smooth",
        ...     non_private_error=0.4, studies=10, also=(),
        ... )
        >>> print(verdict(found).partition(",")[0])
        This study cannot work: its effective sample size is 9. Expect 49.3 % wrong
    """
    expected, outcome = found.expected, prospect(found)
    told = f"Expect {_percent(expected.error)} {_off(found)}"
    size = f"{found.effective:.0f}"
    if (
        outcome == "cannot work" and _gain(found) >= _LEAST
    ):  # an expected error would suggest the opposite
        return (
            f"This study cannot work: its effective sample size, {size}, is too small to tell a "
            "useful model from chance."
        )
    if outcome == "cannot work":
        return (
            f"This study cannot work: its effective sample size is {size}. {told}, where "
            f"{guess(found)} gives {_percent(found.guessing)}."
        )
    between = (
        f"between {guess(found)} ({_percent(found.guessing)}) and no privacy "
        f"({_percent(found.non_private)})"
    )
    if outcome == "may work":
        return (
            f"This study may work: its effective sample size is {size}, and {expected.better:.0%} "
            f"of such studies are better than {guess(found)}. {told}, {between}."
        )
    return f"This study works: its effective sample size is {size}. {told}, {between}."


def prospect(found: Forecast) -> Literal["works", "may work", "cannot work"]:
    """Whether the study can work, as a keyword.

    A study cannot work if its mean gain over guessing is negligible. It may work if the gain is
    large in some simulations and 0 in others; `verdict` states how often it is better.
    """
    if found.effective < _FEWEST or _gain(found) < _LEAST:
        return "cannot work"
    return "may work" if found.expected.better < _SURE else "works"


def _gain(found: Forecast) -> float:
    """The expected gain over guessing, as a share of the gain without privacy."""
    # For numbers the baseline is 1, the error of the true mean, and not that of its noisy estimate.
    nothing = found.guessing if found.plan.target_range is None else 1.0
    return float((nothing - found.expected.error) / (nothing - found.non_private))


def guess(found: Forecast) -> str:
    """The baseline of a study, in words."""
    return "guessing" if found.plan.target_range is None else "the private mean"


def _off(found: Forecast) -> str:
    return "wrong" if found.plan.target_range is None else "of the number's variance left"


def notes(found: Forecast) -> list[str]:
    """The forecast in sentences."""
    expected = found.expected
    said = [verdict(found)]
    if found.sought == "n_people":
        low, high = (f"{end:,.0f}" if math.isfinite(end) else "∞" for end in found.interval)
        needed = f"{found.plan.n_people:,} people are needed"
        said.append(f"{needed} (nine times of ten {low} to {high}).")
    if found.sought == "epsilon":
        low, high = (f"{end:.2g}" if math.isfinite(end) else "∞" for end in found.interval)
        said.append(f"ε = {found.plan.epsilon:g} is needed (nine times of ten {low} to {high}).")
    said.append(
        f"Nine of ten studies like this one lie between {_percent(expected.low)} and "
        f"{_percent(expected.high)}; the mean is known to ±{100 * expected.standard_error:.1f} "
        f"points. People were drawn from {found.basis}."
    )
    if "family" in found.basis and "typical" not in found.basis:
        said.append(_family(found))
    if found.detectable is not None:
        error, distance = found.detectable
        left = f"{_percent(error)} {_off(found)} without privacy"
        what = f"Smallest difference that four of five such studies find: classes {distance:.1f} "
        what += f"standard deviations apart ({left})"
        if found.plan.design.get("spread_differs"):  # no distance says how far spreads differ
            what = "Smallest difference in spread, or mean, that four of five such studies find: "
            what += f"one that leaves {left}"
        if found.plan.target_range is not None:
            what = "Weakest relation that four of five such studies find: a correlation of "
            what += f"{distance:.2f} with what can be predicted ({left})"
        said.append(f"{what}.")
    elif "difference" in found.also:
        what = "relation is so close" if found.plan.target_range else "difference is so large"
        said.append(f"No {what} that four of five such studies would find it.")
    for whom, second in found.second:
        price = "" if second.epsilon == expected.epsilon else f", at ε = {second.epsilon:g} in all"
        said.append(
            f"A second study, of {whom}, would bring {_percent(expected.error)} to "
            f"{_percent(second.error)}{price}."
        )
    if found.theory is not None:
        said.append(_theory(found))
    return said


def method(found: Forecast) -> str:
    """The method in a paragraph, for a proposal."""
    plan = found.plan
    return (
        f"Before anybody was asked, whole studies of {plan.n_people:,} people at ε = "
        f"{plan.epsilon:g} (local differential privacy, unit: {plan.unit}) were simulated with "
        f"dpfda {__version__}, design {plan.design['name']}. People were drawn from {found.basis}. "
        f"{verdict(found)}"
    )


def _family(found: Forecast) -> str:
    unknown = "where your classes differ"
    more = "" if "tables" in found.basis else "a typical curve of each class or "
    if found.plan.target_range is not None:
        unknown, more = "what your number goes with", ""
    return (
        f"This forecast is rough, because it does not know {unknown}. Add {more}a public "
        "sample of a hundred rows to sharpen it."
    )


def _theory(found: Forecast) -> str:
    assert found.theory is not None
    rule = f"Theory for spread-out normal classes gives {_percent(found.theory)}"
    if abs(found.theory - found.expected.error) < _APART:
        return f"{rule}, as the simulation does."
    if found.theory < found.expected.error:
        return f"{rule}, less than the simulation, which also estimates centers and widths."
    return f"{rule}, more than the simulation, whose classes differ in few features."


def consent(plan: StudyPlan) -> str:
    """The consent text: what participants agree to, in plain words and exact numbers."""
    rows, _ = in_words(plan)
    own = "label" if plan.target_range is None else "target"
    clear = {
        "labels": f"Your curve or row is sent as it is: it is public anyway. Your {own} is not.",
        "features": f"Your {own} is public anyway. Your curve or row never leaves your device.",
    }.get(plan.protects, f"Neither your curve or row nor your {own} ever leaves your device.")
    feature = "a feature is one entry of your row"
    if plan.encoder.basis.functional:
        feature = "a feature is a number that your device makes of your curve, such as its level"
    if plan.design.get("spread_differs"):
        feature += ", or the distance of such a number from its center over all people"
    lines = [
        plan.title or "A study", "",
        f"{plan.n_people:,} people take part. {clear}",
        f"You answer once. By lot you get one of these tasks ({feature}):", "",
    ]  # fmt: skip
    for row in rows:
        lines += [f"* {row['people']:,} people are asked: {row['asked']}", *_chances(plan, row)]
    lines += [
        "",
        "Whatever you hold, no reply is more than "
        f"{math.exp(min(plan.epsilon, 700)):.4g} times as likely as if you held anything else "
        f"(this is what ε = {plan.epsilon:g} means). What several studies learn of you adds up.",
        f"You can check what you agreed to: the study's plan has the hash {plan.hash}.",
        "",
    ]
    return "\n".join(lines)


def _chances(plan: StudyPlan, row: Mapping[str, Any]) -> list[str]:
    """The probability of each reply, given each true answer."""
    if row["true"] == "–":  # codewords near the answer are e^ε times as likely
        times = f"{math.exp(min(plan.epsilon, 700)):.4g} times as likely as each of the others"
        return [
            "  Your device sends one of many random directions. Each of those that are near your "
            f"answer is {times}."
        ]
    if row["phase"] == "answers":
        times = f"{math.exp(min(plan.epsilon, 700)):.4g} times as likely"
        return [
            "  You are asked one such question or several at once, as it turns out by then. Your "
            f"device sends your true answers, or others: the true ones are {times} as any others."
        ]
    k = int(row["answers"])
    truth = QuestionResponse(epsilon=plan.epsilon, questions=k).truth_probability
    other = (1 - truth) / 2**k
    if k == 1:
        return [
            f"  If the answer is yes, your device says yes with probability {truth + other:.4f} "
            f"and no with {other:.4f}; if it is no, the other way round."
        ]
    return [
        f"  There are {k} such questions. Your device sends your {k} answers with probability "
        f"{truth + other:.4f}, and each of the {2**k - 1} other rows of answers with {other:.4g}."
    ]


def script(
    found: Forecast, facts: Mapping[str, Any], asked: Mapping[str, Any], read: Mapping[str, str]
) -> str:
    """A Python program that computes the plan and its forecast.

    Args:
        found: the forecast.
        facts: arguments of `plan_study`, without people and ε.
        asked: arguments of `forecast` only.
        read: further arguments of `forecast` by name, with program text that reads each from a
            file.
    """
    plan = found.plan
    facts = {"n_people": plan.n_people, "epsilon": plan.epsilon, **facts}
    lines = "".join(f"    {name}={value!r},\n" for name, value in facts.items())
    extra = "".join(f"    {name}={value!r},\n" for name, value in asked.items())
    extra += "".join(f"    {name}={name},\n" for name in read)
    public = "".join(read.values())
    return (
        "import dpfda\nfrom dpfda.planning.words import notes\n\n"
        f"facts = dict(\n{lines})\nplan = dpfda.plan_study(**facts)\n"
        f"assert plan.hash == {plan.hash!r}\n\n"
        f"{public}found = dpfda.forecast(\n    **facts,\n{extra})\n"
        'print(*notes(found), sep="\\n")\n'
    )


def organizer(plan: StudyPlan) -> str:
    """The commands that the organizer runs: a collector, its study, and invitations."""
    many = min(plan.n_people, 100_000)  # largest number at once; the command can be repeated
    return (
        "#!/bin/sh\n"
        "# The organizer runs this once, beside plan.json; it ends when the collector does.\n"
        "# Put a TLS proxy before it, and give participants its address.\n"
        "set -eu\n"
        "dpfda serve --database sqlite:///study.db --admin-key-file admin.key \\\n"
        '    --port "${PORT:-8000}" &\n'
        "trap 'kill $!' EXIT INT TERM\n"
        'here="http://127.0.0.1:${PORT:-8000}"\n'
        'until curl -fs "$here/health" > health.json; do sleep 1; done\n'
        'dpfda studies create plan.json --json --url "$here" --admin-key-file admin.key \\\n'
        "    > study.json\n"
        f"dpfda studies invite {plan.hash} --people {many} \\\n"
        '    --url "$here" --admin-key-file admin.key > invitations.txt\n'
        "echo 'give each person one line of invitations.txt; it is good for one reply'\n"
        f"echo 'people can join: {plan.hash}'\n"
        "wait $!\n"
    )


def take_part(plan: StudyPlan) -> str:
    """The commands that a participant runs."""
    # As JSON, because a label with a line break would end the comment.
    what, own = "label", " or ".join(json.dumps(str(label)) for label in plan.classes[:9])
    if plan.target_range is not None:
        what, own = "number", "one from {:g} to {:g}".format(*plan.target_range)
    accepted = "".join(f" --accept {shlex.quote(one)}" for one in plan.guarantee.assumptions)
    return (
        "#!/bin/sh\n"
        f"# Each participant runs this once: sh take-part.sh ADDRESS my-data.csv {what.upper()}\n"
        f"# Your {what} is {own}. You see what would be sent before it is sent.\n"
        "# Your invitation, one line of text, is in invitation.txt.\n"
        "set -eu\n"
        f'dpfda join "$1" {plan.hash} --most-epsilon {plan.epsilon!r} \\\n'
        f'    --limit-epsilon "${{LIMIT:-{max(10.0, plan.epsilon)!r}}}"{accepted} \\\n'
        "    --invitation invitation.txt\n"
        f'dpfda submit {plan.hash} "$2" --label "$3" --show\n'
    )


def _percent(share: float) -> str:
    """A percentage; values above 1000 % are not shown exactly."""
    return "more than 1000 %" if share > 10 else f"{100 * share:.1f} %"
