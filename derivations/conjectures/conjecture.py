"""Verdicts on conjectures: proved, refuted, supported or undecided, and on what each rests."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import Any, ClassVar

import sympy as sp

from ... import __version__
from ...errors import GiantstepError, ParameterError
from ...numeric.arguments import whole_number
from ...pages import Block, Indented, Listing, Table
from ...result import Result, quantity
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.targets.target import target as read_target
from ..curves import HasCurves
from ..evidence import Finding
from ..outputs import BEST, Outputs, parameter
from .evaluation import EXACT
from .problem import OTHER, Problem, Range, exact_number, problems, read_range
from .proofs import METHODS, NotProven, Proof, attempt, require_points
from .random_targets import TargetFamily
from .search import Tried, Violation, is_best, search, simplified, turning_point, violation_at
from .statements import Comparison
from .target_statements import (
    HELD,
    LABEL,
    TargetStatement,
    examine_targets,
    is_about_targets,
    target_statement,
)


class Verdict(StrEnum):
    """What can be said of a conjecture."""

    PROVED = "proved"
    REFUTED = "refuted"
    SUPPORTED = "supported"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Counterexample:
    """A place at which a relation fails.

    Attributes
    ----------
    relation : str
        Which one.
    point : mapping from str to str
        Exact values of the variables; a target is a text that reads back.
    left, right : str
        Both sides there, as proven.
    basis : str
        What these values rest on.
    line : str
        Python that shows it again.
    """

    relation: str
    point: Mapping[str, str]
    left: str
    right: str
    basis: str
    line: str

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in self.point.items())
        return f"at {at}: left {self.left}, right {self.right}"


@dataclass(frozen=True, repr=False)
class ConjectureVerdict(Result):
    """What was found of a conjecture.

    Attributes
    ----------
    statement : str
    verdict : Verdict
    over : mapping from str to str
        Ranges of the quantities.
    where : tuple of str
        Conditions on them.
    proofs : tuple of Proof
        One for each relation, if it is proved; :meth:`check` computes them again.
    counterexample : Counterexample or None
        If it is refuted.
    tried, undefined, descents : int
        Points, or targets, that were looked at, that have no value, and the smallest margins that
        were followed downwards.
    worst_margin : float or None
        The smallest margin relative to both sides; negative where a relation fails.
    worst_point : mapping from str to float
        Where it was.
    seed : int
    obstacles : tuple of str
        What stood in the way of a proof.
    model, model_class : str
        The model whose outputs it is about, as JSON, and its class; empty without one.
    formula : str
        The statement in LaTeX.
    """

    _document = "verdict on a conjecture"

    statement: str = field(metadata=quantity("statement"))
    verdict: Verdict = field(metadata=quantity("verdict"))
    over: Mapping[str, str]
    where: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    counterexample: Counterexample | None = None
    tried: int = field(default=0, metadata=quantity("points tried"))
    undefined: int = 0
    descents: int = field(default=0, metadata=quantity("descents"))
    worst_margin: float | None = field(default=None, metadata=quantity("smallest margin"))
    worst_point: Mapping[str, float] = field(default_factory=dict)
    seed: int = field(default=0, metadata=quantity("seed"))
    obstacles: tuple[str, ...] = ()
    model: str = ""
    model_class: str = ""
    formula: str = ""

    _subject: ClassVar[Any] = None
    """Of a verdict that was not read back: what was asked, with its symbols."""

    @property
    def proved(self) -> bool:
        """Whether it is proved."""
        return self.verdict is Verdict.PROVED

    @property
    def refuted(self) -> bool:
        """Whether it is refuted."""
        return self.verdict is Verdict.REFUTED

    @property
    def method(self) -> str:
        """How it was proved or refuted."""
        if self.proofs:
            return ", ".join(dict.fromkeys(proof.method for proof in self.proofs))
        return "counterexample" if self.counterexample else "search"

    @property
    def rests_on(self) -> str:
        """What the verdict rests on, in words."""
        if self.proofs:
            return f"proof by {self.method}; check() computes the certificate again"
        if self.counterexample:
            return f"a counterexample, by {self.counterexample.basis}"
        if self.verdict is Verdict.SUPPORTED:
            points = "1 point" if self.tried == 1 else f"{self.tried} points"
            return f"{points} without a counterexample, which is no proof"
        return "nothing: neither a proof nor a search came to an end"

    def check(self) -> bool:
        """Compute the proof, or the counterexample, again.

        Raises
        ------
        ParameterError
            If it was neither proved nor refuted, or the statement cannot be read back.
        """
        if self.counterexample is None and not self.proofs:
            raise ParameterError(
                f"the conjecture is {self.verdict.value}: there is no certificate to check"
            )
        subject = self._subject or self._reread()
        if isinstance(subject, TargetStatement):
            assert self.counterexample is not None
            return subject.holds(self.counterexample.point) is False
        if self.proofs:
            return len(subject) == len(self.proofs) and all(
                proof.check(problem) for proof, problem in zip(self.proofs, subject, strict=True)
            )
        assert self.counterexample is not None
        return any(_fails_at(problem, self.counterexample) for problem in subject)

    def _reread(self) -> Any:
        if self.over and any(value.startswith(LABEL) for value in self.over.values()):
            numbers = [k for k, v in self.over.items() if not v.startswith((LABEL, HELD))]
            return target_statement(self.statement, list(self.over), numbers)
        outputs = None
        if self.model:
            outputs = _model_of(self.model_class, self.model).outputs
        try:
            return problems(self.statement, self.over, self.where, outputs)[1]
        except GiantstepError as error:
            raise ParameterError(
                f"the statement cannot be read back from text: {str(error).splitlines()[0]}"
            ) from None

    def finding(self) -> Finding:
        """Return the verdict as evidence for a claim: passed if proved or supported."""
        good = self.verdict in (Verdict.PROVED, Verdict.SUPPORTED)
        return Finding(good, self._summary, {"verdict": self.verdict.value})

    @property
    def _summary(self) -> str:
        if self.proofs:
            return f"{self.statement}: proved by {self.method}"
        if self.counterexample:
            return f"{self.statement}: refuted {self.counterexample}"
        worst = "" if self.worst_margin is None else f", smallest margin {self.worst_margin:.2g}"
        return (
            f"{self.statement}: {self.verdict.value}, {self.tried} tried (seed {self.seed}){worst}"
        )

    def latex(self) -> str:
        """Return statement and verdict in LaTeX."""
        return rf"{self.formula}\quad\text{{({self.verdict.value})}}"

    def page(self) -> Any:
        """Return statement, verdict, and what it rests on."""
        yield f"{self.verdict.value}: {self.statement}"
        ranges = [(name, "in", value) for name, value in self.over.items()]
        blocks: list[Block] = [Table(ranges)]
        if self.where:
            blocks.append(f"where {'; '.join(self.where)}")
        for proof in self.proofs:
            blocks += [f"{proof.method}: {proof.claim}", Listing(proof.steps)]
        if self.counterexample is not None:
            one = self.counterexample
            at = ", ".join(f"{name} = {value}" for name, value in one.point.items())
            blocks += [f"at {at}", f"{one.relation}: left {one.left}, right {one.right}", one.line]
        elif not self.proofs:
            worst = ""
            if self.worst_margin is not None:
                at = ", ".join(f"{k} = {v:.6g}" for k, v in self.worst_point.items())
                worst = f"; smallest relative margin {self.worst_margin:.3g}"
                worst += f" at {at}" if at else ""
            blocks.append(
                f"{self.tried} tried, {self.undefined} without a value, {self.descents} descents, "
                f"seed {self.seed}{worst}"
            )
        if self.obstacles and not self.proofs and self.counterexample is None:
            blocks += ["no proof because", Listing(self.obstacles)]
        yield Indented(blocks)
        yield self.rests_on

    def _about(self, subject: Any) -> ConjectureVerdict:
        object.__setattr__(self, "_subject", subject)
        return self


def conjecture(
    statement: Any,
    over: Mapping[Any, Any],
    where: Sequence[Any] = (),
    *,
    of: Any = None,
    tries: int | None = None,
    seed: int = 0,
    method: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> ConjectureVerdict:
    r"""Prove a statement over ranges of its quantities, or look for a counterexample.

    Parameters
    ----------
    statement : str, relation, statement or callable
        A text, such as "risk_trained <= risk_initial" or "decreasing(improvement,
        noise_variance)" with ``of=model``; a relation of SymPy, in which outputs of models are
        ``model.outputs["..."]``; what :func:`increasing`, :func:`decreasing`, :func:`positive`,
        :func:`nonnegative`, :func:`independent` or :func:`equal` returns; about random targets a
        text such as "leaps(f).coordinate == leaps(f).isotropic", or a function of the target that
        returns True or False.
    over : mapping
        Of every quantity, by name or symbol: a range (0, 2), where ends belong to it and may be
        infinite; an interval of SymPy; "positive" or "real"; a number, at which it is held; for a
        penalty "best", the one with the smallest error; for targets a :class:`TargetFamily`, of
        which they are drawn, or a text that holds one fixed. Floats mean the decimal numbers that
        they print as.
    where : sequence of str or relation
        Further conditions, such as "alpha > beta".
    of : model, optional
        Whose outputs a text names.
    tries : int, optional
        Points of the search; default 1024, of outputs of models 512, of targets 200, with a best
        penalty or averages without a closed form 64. With 0 there is no search.
    seed : int
        Fixes the points.
    method : {"identity", "positive terms", "sturm", "derivatives", "branch and bound", \
              "elimination", "search"}, optional
        Nothing but this; default: all, first a short search, then proofs, then the search.
    store : path, optional
        Folder for finished blocks of the search: the same call resumes there.
    progress : bool
        Show a bar if it takes longer than a second.

    Returns
    -------
    ConjectureVerdict
        Its `verdict` is "proved", with `proofs` that :meth:`~ConjectureVerdict.check` computes
        again; "refuted", with an exact `counterexample`; "supported" by a search, which is no
        proof; or "undecided".

    Raises
    ------
    ParameterError
        If a quantity has no range, a range is empty, belongs to nothing or contradicts the
        assumptions on a symbol, or a method that needs a box is given none.
    ExpressionError
        If a text cannot be read.

    Examples
    --------
    >>> print(conjecture("x**4 + 1 >= 2*x**2", over={"x": "real"}).verdict)
    proved
    >>> found = conjecture("x**3 >= x**2", over={"x": (0, 2)})
    >>> found.verdict.value, dict(found.counterexample.point)
    ('refuted', {'x': '1/2'})
    """
    if not isinstance(over, Mapping) or not over:
        raise ParameterError(
            f"over must hold the range of every quantity, such as {{'x': (0, 2)}}, got {over!r}"
        )
    seed = whole_number("seed", seed, 0)
    if method is not None and method not in (*METHODS, "search"):
        raise ParameterError(
            f"method must be one of {', '.join((*METHODS, 'search'))}, got {method!r}"
        )
    if is_about_targets(over, statement):
        return _about_targets(statement, over, where, tries, seed, method, store, progress)
    if callable(statement) and not hasattr(statement, "free_symbols"):
        raise ParameterError(
            "statement: a function is for random targets, and over= holds none; give "
            "over={'f': giantstep.TargetFamily(dimension=2)}, or write the statement as a relation"
        )
    outputs = _outputs(of)
    read, parts = problems(statement, over, where, outputs)
    model, model_class = _document(parts)
    common: dict[str, Any] = {
        "statement": str(read), "formula": read.latex(), "seed": seed, "model": model,
        "model_class": model_class, "where": _conditions(parts, where),
        "over": _shown(over),
    }  # fmt: skip
    if tries is None:
        has_outputs = any(p.outputs for p in parts)
        slow = any(is_best(p) or p.margin.atoms(GaussianExpectation) for p in parts)
        tries = 64 if slow else 512 if has_outputs else 1024
    tries = whole_number("tries", tries, 0)
    obstacles: list[str] = []
    results = []
    key = {"conjecture": common["statement"], "over": common["over"], "where": common["where"],
           "model": model, "giantstep": __version__}  # fmt: skip
    for part in parts:
        one = _one(part, tries, seed, method, store, {**key, "part": str(part.statement)}, progress)
        results.append(one)
        obstacles += one[3]
        if one[1] is not None:
            break
    tried = [one[2] for one in results]
    counts: dict[str, Any] = {
        "tried": sum(t.count for t in tried), "undefined": sum(t.undefined for t in tried),
        "descents": sum(t.descents for t in tried),
    }  # fmt: skip
    known = [t for t in tried if not math.isnan(t.worst)]
    if known:
        worst = min(known, key=lambda t: t.worst)
        counts |= {"worst_margin": worst.worst, "worst_point": worst.point}
    counter = next((one[1] for one in results if one[1] is not None), None)
    proofs = [one[0] for one in results]
    if counter is not None:
        verdict = Verdict.REFUTED
    elif all(proof is not None for proof in proofs):
        verdict = Verdict.PROVED
    elif (
        known
        and min(t.worst for t in known) >= -1e-9
        and all(one[0] is not None or one[2].count for one in results)
    ):
        verdict = Verdict.SUPPORTED
    else:
        verdict = Verdict.UNDECIDED
        if not known:
            for part in parts:
                require_points(part)
            if method in (None, "search") and tries:
                for part in parts:
                    obstacles += _refusals(part)
                obstacles.append(
                    "search: no point of the ranges has a value that meets the conditions"
                )
        elif counts["worst_margin"] < 0:
            obstacles.append("search: in floats the relation fails, and no proof of that was found")
    return ConjectureVerdict(
        verdict=verdict,
        proofs=tuple(p for p in proofs if p is not None) if verdict is Verdict.PROVED else (),
        counterexample=counter,
        obstacles=tuple(dict.fromkeys(obstacles)),
        **common, **counts,
    )._about(parts)  # fmt: skip


_SHORT = 128
_NOTHING = Tried(0, 0, 0, math.nan, {})


def _one(
    part: Problem,
    tries: int,
    seed: int,
    method: str | None,
    store: Any,
    key: Mapping[str, Any],
    progress: bool,
) -> tuple[Proof | None, Counterexample | None, Tried, list[str]]:
    """Look at one relation: a short search, proofs, and the whole search."""
    options = {"seed": seed, "store": store, "key": key, "progress": progress}
    obstacles: list[str] = []
    tried = _NOTHING
    if method in (None, "search") and tries:
        short = min(tries, _SHORT) if method is None else tries
        # Derivatives of models take their time, and what is true by a proof has no use for them.
        full = method is not None or (tries <= _SHORT and is_best(part))
        tried, violation = search(part, tries=short, descend=full, **options)
        if violation is not None:
            return None, _counterexample(part, violation.point, violation), tried, []
    if method != "search" and not is_best(part):
        for one in METHODS if method is None else (method,):
            try:
                return attempt(part, one), None, tried, []
            except NotProven as reason:
                obstacles.append(str(reason))
                violation = _seen(part, reason.point)
                if violation is not None:
                    return None, _counterexample(part, violation.point, violation), tried, []
                if method == "branch and bound" and "needs a box" in str(reason):
                    raise ParameterError(f"over: {reason}") from None
    if method is None and tries and not is_best(part):
        tried, violation = search(part, tries=tries, **options)
        if violation is not None:
            return None, _counterexample(part, violation.point, violation), tried, []
    return None, None, tried, obstacles


def _seen(part: Problem, point: Mapping[sp.Symbol, sp.Expr]) -> Violation | None:
    """Return the counterexample that a failed proof ran into."""
    names = {x.name for x in point}
    if isinstance(part.statement, Comparison):
        if names != set(part.ranges):
            return None
        found = violation_at(part, {x.name: value for x, value in point.items()})
        return None if found is None else simplified(part, found)
    if names | {f"{part.statement.variable}{OTHER}"} != set(part.ranges):
        return None
    return turning_point(part, point)


def _refusals(part: Problem) -> list[str]:
    """Return what outputs say in the middle of the ranges, where no point has a value."""
    result = []
    middle = {}
    for name, one in part.ranges.items():
        low = one.low if one.low.is_finite else one.high - 2 if one.high.is_finite else -sp.S.One
        high = one.high if one.high.is_finite else low + 2
        middle[parameter(name)] = (low + high) / 2
    for output in part.outputs:
        at = {
            name: value if value == BEST else float(value.xreplace(middle))
            for name, value in output.bindings.items()
        }
        try:
            output.value(**{k: x if x != BEST else BEST.name for k, x in at.items()})
        except GiantstepError as error:
            result.append(f"{output.name}: {str(error).splitlines()[0]}")
    return [*dict.fromkeys(result)]


def _outputs(of: Any) -> Outputs | None:
    if of is None:
        return None
    outputs = getattr(of, "outputs", None)
    if not isinstance(outputs, Outputs):
        raise ParameterError(
            f"of must be a model with outputs, such as OneGradientStep(...), got {of!r}; formulas "
            "of a result are expressions, to be compared in Python without of, as in "
            "increasing(giant_step(...).alignment, 'n'), and leaps of targets are named in a "
            "statement over={'f': TargetFamily()}"
        )
    return outputs


def _document(parts: Sequence[Problem]) -> tuple[str, str]:
    """Return the one model of a statement as JSON, and its class."""
    models = {(o.model.to_json(), _class_of(o.model)) for p in parts for o in p.outputs}
    if len(models) != 1:
        return "", ""
    return models.pop()


def _class_of(model: Any) -> str:
    home = f"{__package__.rpartition('.')[0]}."
    return f"{type(model).__module__.removeprefix(home)}.{type(model).__qualname__}"


def _model_of(name: str, text: str) -> Any:
    """Return a model of this package by the name of its class, from JSON."""
    module, _, kind = name.rpartition(".")
    home = __package__.rpartition(".")[0]
    known = all(part.isidentifier() for part in name.split(".")) and len(module) > 0
    try:
        found = getattr(import_module(f"{home}.{module}"), kind) if known else None
    except (ImportError, AttributeError):
        found = None
    if not (isinstance(found, type) and issubclass(found, HasCurves)):
        raise ParameterError(f"{name!r} is no model of giantstep")
    return found.from_json(text)  # type: ignore[attr-defined]


def _conditions(parts: Sequence[Problem], where: Any) -> tuple[str, ...]:
    given = [where] if isinstance(where, str) or not isinstance(where, Sequence) else where
    return tuple(str(x) for x in given)


def _shown(over: Mapping[Any, Any]) -> dict[str, str]:
    names = {key: key if isinstance(key, str) else key.name for key in over}
    return {names[key]: str(read_range(names[key], value)) for key, value in over.items()}


def _counterexample(part: Problem, point: Mapping[str, Any], found: Any) -> Counterexample:
    bases = dict.fromkeys([found.left.basis, found.right.basis])
    if len(bases) > 1:
        bases.pop(EXACT, None)
    rule = {parameter(name): value for name, value in point.items()}
    others = {name: value.xreplace(rule) for name, value in part.determined.items()}
    return Counterexample(
        relation=f"{part.left} {part.relation} {part.right}",
        point={name: str(value) for name, value in {**point, **others}.items()},
        left=str(found.left),
        right=str(found.right),
        basis="; ".join(bases),
        line=_line(part, point),
    )


def _line(part: Problem, point: Mapping[str, Any]) -> str:
    """Return Python that prints both sides at a point."""
    if not part.outputs:
        names = ", ".join(point)
        values = ", ".join(f"{name}: Rational({str(value)!r})" for name, value in point.items())
        return (
            f"from sympy import *; {names} = symbols({names!r}, real=True); "
            f"print([N(S(side).subs({{{values}}}), 15) for side in "
            f"({part.left}, {part.right})])"
        )
    documents = [json.dumps(json.loads(o.model.to_json())) for o in part.outputs]
    labels = {}
    for i, output in enumerate(part.outputs):
        at = {name: value.xreplace({parameter(k): v for k, v in point.items()})
              for name, value in output.bindings.items()}  # fmt: skip
        given = ", ".join(
            f"{name}={str(value)!r}" if str(value) == "best" else f"{name}={float(value)!r}"
            for name, value in at.items()
        )
        labels[output] = f"m{documents.index(documents[i])}.outputs[{output.name!r}].value({given})"
    models = [
        f"m{documents.index(text)} = {_reader(type(o.model))}({text!r})"
        for o, text in zip(part.outputs, documents, strict=True)
    ]
    sides = []
    for side in (part.left, part.right):
        marks = {o: parameter(f"OUTPUT{i}") for i, o in enumerate(labels)}
        rational = {parameter(k): v for k, v in point.items()}
        text = str(side.xreplace(marks).xreplace(rational))
        for output, mark in marks.items():
            text = text.replace(mark.name, labels[output])
        sides.append(text)
    return f"import giantstep as gs; {'; '.join(dict.fromkeys(models))}; print({', '.join(sides)})"


def _reader(model: type) -> str:
    """Return Python for what reads a model from JSON, by its public name where it has one."""
    package, name = __package__.partition(".")[0], model.__name__
    if getattr(import_module(package), name, None) is model:
        return f"gs.{name}.from_json"
    return f"__import__('importlib').import_module({model.__module__!r}).{name}.from_json"


def _fails_at(part: Problem, one: Counterexample) -> bool:
    if set(one.point) != {*part.ranges, *part.determined}:
        return False
    point = {name: exact_number(name, one.point[name]) for name in part.ranges}
    at = {parameter(name): value for name, value in point.items()}
    others = all(str(x.xreplace(at)) == one.point[name] for name, x in part.determined.items())
    return others and violation_at(part, point) is not None


def _about_targets(
    statement: Any, over: Mapping[Any, Any], where: Any, tries: int | None, seed: int,
    method: str | None, store: Any, progress: bool,
) -> ConjectureVerdict:  # fmt: skip
    if where:
        raise ParameterError("where: conditions on random targets are those of the TargetFamily")
    if method not in (None, "search"):
        raise ParameterError(f"method {method!r} proves nothing of targets: there is a search only")
    spans = {key if isinstance(key, str) else key.name: value for key, value in over.items()}
    families: dict[str, TargetFamily | Range | str] = {}
    for name, value in spans.items():
        one = value
        if not isinstance(value, TargetFamily):
            try:
                one = read_range(name, value)
            except ParameterError:
                if not isinstance(value, str):
                    raise
                families[name] = str(read_target(value))
                continue
        if not isinstance(one, TargetFamily) and not (isinstance(one, Range) and one.is_bounded):
            raise ParameterError(
                f"over: {name} must be a TargetFamily, the text of a target, or a bounded range of "
                f"numbers, got {value!r}"
            )
        families[name] = one
    numbers = [name for name, one in families.items() if isinstance(one, Range)]
    read = target_statement(statement, list(families), numbers)
    count = whole_number("tries", 200 if tries is None else tries, 1)
    tried, undecided, counter = examine_targets(
        read, families, count, seed, store=store, progress=progress
    )
    verdict = Verdict.SUPPORTED if tried else Verdict.UNDECIDED
    example = None
    if counter is not None:
        verdict = Verdict.REFUTED
        left, right = read.sides(counter)
        example = Counterexample(str(read), counter, left, right, EXACT, read.line(counter))
    words = {TargetFamily: LABEL, str: HELD}
    return ConjectureVerdict(
        statement=str(read), formula=read.latex(), verdict=verdict,
        over={name: f"{words.get(type(one), '')}{one}" for name, one in families.items()},
        counterexample=example, tried=tried, undefined=undecided, seed=seed,
        obstacles=("targets are infinitely many: a search proves nothing",),
    )._about(read)  # fmt: skip
