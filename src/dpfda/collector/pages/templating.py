"""Rendering of the page templates, and the words and QR codes in them.

Values in templates are escaped, and a missing name is an error.
"""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import segno
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import MediaType
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.response import Template

from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan

FOLDER = Path(__file__).parent / "templates"


def show(value: object) -> str:
    """The text of a cell: three decimals for floats, a dash for None.

    Examples:
        >>> show(-0.0001), show(None), show(True), show("a")
        ('0.000', '–', 'yes', 'a')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:z.3f}"  # -0.0001 is 0.000
    return str(value)


_environment = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_environment.filters["show"] = show
ENGINE = JinjaTemplateEngine.from_environment(_environment)


def page(name: str, *, status: int = 200, **context: object) -> Template:
    """A page from the template of this name; the framework renders it."""
    return Template(f"{name}.html", context=context, media_type=MediaType.HTML, status_code=status)


def text(shown: Template) -> str:
    """Render a page as text.

    Examples:
        >>> '<h1>Sign in</h1>' in text(page("login", visitor=None, wrong=False))
        True
    """
    return ENGINE.get_template(str(shown.template_name)).render(**shown.context)


def drawn(chart: str, parts: object) -> str:
    """Render a chart from `charts.html` as markup.

    Examples:
        >>> from dpfda.collector.pages import charts
        >>> drawn("curve", charts.curve("<b>", [0.0, 1.0], [0.0, 2.0])).count("&lt;b&gt;")
        2
    """
    return str(getattr(_environment.get_template("charts.html").module, chart)(parts)).strip()


_PHASES = {
    "vectors": "How features go with the label or the number",
    "answers": "Which features go with the label",
    "location": "Typical values of features",
    "spread": "How widely features are spread",
    "correlation": "Which features go together",
    "moments": "Which features matter",
    "gradient": "Improving the model",
    "temperature": "Calibrating the probabilities of the model",
    "evaluation": "Evaluating the finished model",
    "labels": "Reporting noisy labels",
    "report": "Reporting noisy curves",
    "evaluate": "Evaluating first models",
    "check": "Evaluating the finished model",
    "feedback": "Evaluating first models",
}
_STATUS = {
    "open": "waiting for answers",
    "closing": "computing results",
    "finished": "finished",
}
_ACTS = {
    "created": "created the study",
    "edited": "changed the study before anybody had joined",
    "invited": "made links for {}",
    "ended": "ended {} with the answers that had arrived",
    "purged": "deleted the replies of finished phases",
    "deleted": "deleted the study",
    "gave": "gave the study to {}",
    "read": "downloaded the randomized replies of {}",
    "added": "added the organizer {}",
    "rotated": "made a new key for {}",
    "removed": "removed the organizer {}",
    "confirmed": "confirmed the system clock",
}
_MANY = 10**6  # larger than the number of functions of a channel
_WAVES = ("level", "start versus end", "middle versus both ends")


def phase_name(kind: str) -> str:
    """The purpose of a phase, in plain words.

    Examples:
        >>> phase_name("location"), phase_name("new_kind")
        ('Typical values of features', 'new kind')
    """
    return _PHASES.get(kind, kind.replace("_", " "))


def act_name(what: str, detail: str = "") -> str:
    """What an organizer did, in words.

    Examples:
        >>> act_name("ended", "phase 2"), act_name("new_act")
        ('ended phase 2 with the answers that had arrived', 'new act')
    """
    return _ACTS.get(what, what.replace("_", " ")).replace("{}", detail)


def moment(seconds: float) -> str:
    """A time in readable form, in UTC.

    Examples:
        >>> moment(0.0)
        '1970-01-01 00:00'
    """
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def status_name(status: str) -> str:
    """The state of a study, in words."""
    return _STATUS.get(status, status)


def feature_name(encoder: object, place: int, *, folded: int = 0) -> str:
    """A description of a feature, if there is a short one.

    Examples:
        >>> curves = CurveEncoder("cosine", n_basis=4)
        >>> [feature_name(curves, place) for place in (0, 1, 3)]
        ['level', 'start versus end', 'faster swings (3 half waves)']
        >>> feature_name(curves, 4, folded=4)
        'distance from the middle: level'
    """
    if folded and place >= folded:
        inside = feature_name(encoder, place - folded)
        return f"distance from the middle: {inside}"
    if not isinstance(encoder, CurveEncoder):
        return f"feature {place + 1}"
    if encoder.table is not None:
        return str(encoder.table.names[place])
    parts = encoder.basis.parts  # features of several channels are interleaved
    own = [number * _MANY + np.arange(float(part.n_basis)) for number, part in enumerate(parts)]
    channel, inside_it = divmod(int(encoder.basis.in_turns(own)[place]), _MANY)
    named = _alone(parts[channel].name or "", inside_it)
    return named if len(parts) == 1 else f"channel {channel + 1}: {named}"


def _alone(basis: str, place: int) -> str:
    if basis == "identity":
        return f"column {place + 1}"
    if basis != "cosine":
        return f"{basis} function {place + 1}"
    return _WAVES[place] if place < len(_WAVES) else f"faster swings ({place} half waves)"


def score_name(plan: StudyPlan, score: int) -> str:
    """The class that a large score indicates."""
    if plan.target_range is not None:
        return "a larger number"
    return f"“{plan.classes[1 if plan.n_classes == 2 else score]}”"


def qr_svg(url: str) -> str:
    """A QR code of a link as an SVG element for a page.

    It has the class ``qr`` and no size. It is always dark on light, as cameras expect. It contains
    no text, so the page must state the link as well.

    Examples:
        >>> qr_svg("https://collector.example/take-part/…")[:26]
        '<svg viewBox="0 0 37 37" c'
    """
    drawn = io.BytesIO()
    segno.make(url, micro=False, error="m").save(
        drawn,
        kind="svg",
        border=4,
        dark="#000",
        light="#fff",
        xmldecl=False,
        svgns=False,
        omitsize=True,
        svgclass="qr",
        lineclass=None,
        nl=False,
    )
    return drawn.getvalue().decode()
