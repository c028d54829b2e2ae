"""What `mutants.py` changes: which lines of the package, and in which ways.

Only lines that can void a guarantee count: a scale, sensitivity, share, clip, threshold,
comparison, authentication or spend. `PLACES` names the files and functions.
"""

from __future__ import annotations

import ast
import copy
import fnmatch
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dpfda"

EVERY = ""
WORDS = (
    r"scale|sensitiv|share|clip|threshold|epsilon|delta|sigma|\bmu\b|radius|reach|bound|spen[dt]|"
    r"\bpay|afford|limit|price|budget|rounding|step|odds|\blow\b|\bhigh\b|precision|most|accepts|"
    r"assum|asked|answered|unit\b|digest|signature|confirm|expire|token|compare|authori|survivor|"
    r"opened|attempt|keep|chance|cap\b|lattice|multiplier|within|allow|fits|check|axes|fitting|"
    r"cost|noise|secret|password|ledger|mechanism|\bn\b|raise"
)
COSTS = r"cost|\.part\(|\.rest\(|share|budget|epsilon|delta|assum|\bn=|most|unit"


@dataclass(frozen=True)
class Place:
    """Files and functions whose lines are changed.

    Attributes:
        files: patterns under `src/dpfda`.
        lines: only those in which this is found.
        functions: patterns of names.
        edges: whether `<` is also taken for `<=`: where what is compared is counted, not measured.
    """

    files: str
    lines: str = EVERY
    functions: str = "*"
    edges: bool = False


PLACES = [
    Place("noise/*.py mechanisms/*.py"),
    Place("privacy/calibration.py privacy/composition.py privacy/events.py privacy/durable.py"),
    Place("privacy/guarantee.py privacy/durable.py privacy/tally.py"),
    Place("privacy/cost.py privacy/filter.py privacy/price.py privacy/ledger*.py", edges=True),
    Place("protocol/holder.py protocol/person.py protocol/site.py", edges=True),
    Place("protocol/query.py protocol/task.py protocol/tasks/*.py protocol/fields.py"),
    Place("protocol/account.py protocol/consortium.py protocol/plan.py", WORDS, edges=True),
    Place("protocol/query.py protocol/conversation.py protocol/plan.py", WORDS),
    Place("protocol/server.py protocol/wire.py protocol/plan.py", WORDS),
    Place("protocol/secure_sum/*.py", edges=True),
    Place("central/*quer*.py central/ball_search.py central/linear.py central/losses.py"),
    Place("central/records.py central/kernel_density.py", WORDS),
    Place("central/*.py", COSTS, "questions *query* of _budget layout ask whole_ball allows"),
    Place("central/function_on_scalar.py", EVERY, "mechanism apart reach longest covariates_of"),
    Place("central/kernel_machine.py central/moments/sparse_mean.py", EVERY, "mechanism"),
    Place("central/moments/moment_query.py"),
    Place("central/moments/*.py", COSTS, "questions joint _outside"),
    Place("central/regression/*quer*.py central/regression/problem.py"),
    Place(
        "central/regression/alternatives.py central/regression/perturbation.py "
        "central/regression/two_stage.py",
        EVERY,
        "l1 l2 mechanism *noise weights summed *block* *statistic exact event _segment *_l1 *_l2 "
        "tilt* radius* kept *sigma* clip* unit_rows fitting size",
    ),
    Place("central/regression/*.py", COSTS, "questions *query* most* ask _ask"),
    Place("local/boosting/*request*.py local/boosting/shares.py", WORDS),
    Place(
        "local/*.py local/boosting/*.py local/mrma/*.py local/study/*.py",
        COSTS,
        "asks tasks possible _kinds draw_*",
    ),
    Place("curves/matrices.py"),
    Place("collector/service.py collector/phases.py collector/conclude.py"),
    Place("collector/replies.py"),
    Place("collector/api.py collector/people.py collector/pages/session.py", edges=True),
    Place("collector/limits.py", edges=True),
    Place("collector/middleware.py", edges=True),
    Place("collector/plans.py collector/watcher.py", edges=True),
    Place("collector/storage/issuing.py collector/storage/forgetting.py", edges=True),
    Place("collector/storage/base.py", EVERY, "sent_away is_somebody", edges=True),
    Place(
        "sites/guard.py sites/identity.py sites/stored_files.py",
        edges=True,
    ),
    Place("sites/sums.py sites/owners.py sites/servers.py", edges=True),
    Place("sites/servers.py client/administrator.py local/mrma/result.py", WORDS, edges=True),
    Place("sites/sums.py sites/owners.py", WORDS, edges=True),
    Place("sites/plan.py sites/coordinator.py sites/sums.py", WORDS, edges=True),
    Place("sites/site_folder.py protocol/person.py", edges=True),
    Place("sites/site_folder.py sites/study_folder.py", WORDS, edges=True),
    Place("client/remote.py client/outbox.py curate.py simulate.py sites/rehearsal.py"),
    Place(
        "estimators/central_base.py estimators/blocks.py estimators/cluster.py sites/inquiry.py",
        WORDS,
    ),
    Place("report/report.py", EVERY, "guessing_bound"),
    Place("estimators/study_report.py", r"simulated|hidden|HELD_OUT", "of_study"),
]
HARMLESS = {
    "__repr__", "__str__", "examples", "example", "example_fields", "to_dict", "to_json",
    "worst_cases", "describe", "said", "trial", "summary", "neighbors", "privacy_error",
    "log_likelihood", "box_corners", "_worst_direction", "_majority_probability", "_distance",
    "_in_cap", "depths", "depth_shape", "_described", "_shown",
}  # fmt: skip
"""Functions that show things, and those of checks: they decide nothing about an answer."""


@dataclass(frozen=True, eq=False)
class Mutant:
    """One change: where, what stood there, what stands there now.

    Attributes:
        path: of the file, under `src/dpfda`.
        place: the function.
        line: its number.
        offset: the same, counted from the first line of the function.
        before, after: what is replaced by what.
        again: how many times the same stood in the function before.
        function: its text, so that verdicts hold as long as the function is the same.
        change: the tree of the file, the node in it, and what takes its place.
    """

    path: str
    place: str
    line: int
    offset: int
    before: str
    after: str
    again: int
    function: str
    change: tuple[ast.Module, ast.AST, ast.AST]

    @property
    def name(self) -> str:
        """The same as long as the line is the same."""
        times = f" ({self.again + 1})" if self.again else ""
        return f"{self.path}::{self.place}: {self.before} -> {self.after}{times}"

    @property
    def key(self) -> str:
        """The same as long as the function is the same."""
        return hashlib.sha256((self.name + self.function).encode()).hexdigest()[:24]

    @property
    def source(self) -> str:
        """The file with the change in it."""
        tree, old, new = self.change

        class Swap(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> ast.AST:
                return new if node is old else self.generic_visit(node)

        changed = Swap().visit(copy.deepcopy(tree, {id(old): old}))
        return ast.unparse(ast.fix_missing_locations(changed))


def every_mutant() -> Iterator[Mutant]:
    """All changes to all places, in the order of files and lines; each once."""
    seen: set[str] = set()
    for place in PLACES:
        for pattern in place.files.split():
            paths = sorted(SOURCE.glob(pattern))
            if not paths:  # the files were moved: their mutants would be lost silently
                raise ValueError(f"no file matches {pattern}")
            for path in paths:
                for mutant in of_file(path, place):
                    if mutant.name not in seen:
                        seen.add(mutant.name)
                        yield mutant


def of_file(path: Path, place: Place) -> Iterator[Mutant]:
    """The changes to one file."""
    text = path.read_text()
    tree, lines = ast.parse(text), text.splitlines()
    words, functions = re.compile(place.lines), place.functions.split()
    for name, function in functions_in(tree):
        last = name.rpartition(".")[2]
        if last in HARMLESS or not any(fnmatch.fnmatch(last, wish) for wish in functions):
            continue
        again: Counter[tuple[str, str]] = Counter()
        for node in (node for part in (function.args, *function.body) for node in _nodes(part)):
            line = getattr(node, "lineno", 0)
            for new in changes(node, edges=place.edges):
                before, after = _short(ast.unparse(node)), _short(ast.unparse(new))
                again[before, after] += 1
                if before != after and words.search(lines[line - 1]):
                    yield Mutant(
                        path=str(path.relative_to(SOURCE)),
                        place=name,
                        line=line,
                        offset=line - function.lineno,
                        before=before,
                        after=after,
                        again=again[before, after] - 1,
                        function=ast.unparse(function),
                        change=(tree, node, new),
                    )


def changes(node: ast.AST, *, edges: bool = False) -> Iterator[ast.AST]:
    """What may go wrong at one node."""
    match node:
        case ast.Compare(ops=ops):
            for kinds in (_TURNED, _EDGES) if edges else (_TURNED,):
                for place, op in enumerate(ops):
                    if type(op) in kinds:
                        other = kinds[type(op)]()
                        yield _with(node, ops=[*ops[:place], other, *ops[place + 1 :]])
        case ast.BinOp(op=op) if type(op) in _SWAPPED:
            yield _with(node, op=_SWAPPED[type(op)]())
        case ast.BinOp(op=ast.Pow()):
            yield node.left
        case ast.BoolOp(op=ast.And()):
            yield _with(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield _with(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not()) | ast.UnaryOp(op=ast.USub(), operand=ast.Name()):
            yield node.operand
        case ast.Constant(value=value) if isinstance(value, float) or (
            isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1
        ):
            yield ast.Constant(value=value / 2 if isinstance(value, float) else value // 2)
        case ast.Call(func=func, args=[first, *_]) if _called(func) in _UNWRAPPED:
            yield first
        case ast.If(body=[ast.Raise()]):
            yield _with(node, test=ast.Constant(value=False))
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() as test):
            yield _with(node, test=ast.UnaryOp(op=ast.Not(), operand=test))
        case ast.IfExp(test=ast.Name() | ast.Attribute() | ast.Call() as test):
            yield _with(node, test=ast.UnaryOp(op=ast.Not(), operand=test))
        case ast.Expr(value=ast.Call(func=func)) if not ast.unparse(func).startswith("log."):
            yield ast.Pass()


_TURNED = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_EDGES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_SWAPPED = {ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Add: ast.Sub, ast.Sub: ast.Add}
_UNWRAPPED = {"sqrt", "clip", "max", "min", "abs", "maximum", "minimum", "ceil", "nan_to_num",
              "finite", "frozenset", "sorted", "exact", "rounded_up", "rounded_down"}  # fmt: skip


def _called(func: ast.AST) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _with(node: ast.AST, **parts: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in parts.items():
        setattr(other, name, value)
    return other


def functions_in(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions and methods, each with its dotted name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions_in(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All that is under a node but texts: of errors, of labels, of what must hold anyway."""
    yield node
    if not isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        for child in ast.iter_child_nodes(node):
            yield from _nodes(child)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    if len(flat) <= 90:
        return flat
    return f"{flat[:70]}…{hashlib.sha256(flat.encode()).hexdigest()[:8]}"
