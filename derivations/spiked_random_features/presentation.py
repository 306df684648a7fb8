r"""The derivation in print: what was derived, as a paper would set it.

Everything is read off the SymPy objects of the derivation. The only liberty taken is notation: the
conditional variance V, mean M and error ε of Results 3.2 and 3.3 are named wherever they
occur, and prefactors are cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from ...errors import AssumptionError
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.lowering.tables import closed_or_node
from ...symbolic.systems.random_matrix import MarchenkoPasturAverage, Resolvent
from ..first_gradient.spike_mapping import SpikeMapping, spike_mapping
from ..formulas import equation_latex, equation_mathml, latex, tidy
from ..readable import readable
from . import physics as symbols
from .bulk_law import IID

if TYPE_CHECKING:
    from ...symbolic.systems.equations import Block
    from .derive import SymbolicModel
    from .model import SpikedRandomFeatures

_VARIANCE, _MEAN, _ERROR = (
    sp.Function(name, real=True)(symbols.kappa) for name in ("V", "M", "varepsilon")
)
_A, _B = sp.symbols("a b", positive=True)


@dataclass(frozen=True)
class Formula:
    """A formula ``left = right``."""

    left: sp.Expr
    right: sp.Expr

    def latex(self) -> str:
        """Return the formula in LaTeX, without delimiters."""
        return equation_latex(self.left, self.right)

    def mathml(self) -> str:
        """Return the formula as a MathML element."""
        return equation_mathml(self.left, self.right)


@dataclass(frozen=True)
class Section:
    """Formulas that belong together.

    Attributes
    ----------
    remark : str
        One or two sentences.
    """

    title: str
    remark: str
    formulas: tuple[Formula, ...]


def sections(model: SpikedRandomFeatures) -> tuple[Section, ...]:
    """Return everything that was derived for a model, in the order of the derivation."""
    symbolic = model.symbolic()
    found = [
        *_step(model, symbolic),
        *([] if model.width is None else _finite_width()),
        Section(
            "Features of a fresh input (Result 3.2)",
            "Given the projection κ ∼ N(0, 1) on the spike, a feature has mean μ₀(κ), "
            "slope μ₁(κ) in the bulk and residual variance μ₂²(κ); T₀, T₁, T₂ are the teacher's "
            "conditional moments. Where a rule gives a closed form it is printed; otherwise the "
            "expectation is tabulated by quadrature.",
            coefficients(symbolic),
        ),
        Section(
            "Abbreviations", "Functions of κ, argument omitted below.", _abbreviations(symbolic)
        ),
        *_blocks(symbolic),
        _spectrum(model),
        Section(
            "Errors",
            "Mean squared error on fresh inputs against the noise-free target, and on the "
            "training set against the noisy labels.",
            errors(symbolic),
        ),
    ]
    return tuple(section for section in found if section.formulas)


def coefficients(symbolic: SymbolicModel) -> tuple[Formula, ...]:
    """Return the conditional coefficients in closed form, or as 𝔼 where no rule gives one."""
    # The label variable s of the free energy would be read as the step size.
    bound = {symbols.s: sp.Symbol("xi", real=True)}
    return tuple(
        Formula(f, tidy(closed_or_node(d).xreplace(bound)))
        for f, d in _definitions(symbolic).items()
    )


def equations(symbolic: SymbolicModel) -> tuple[tuple[str, tuple[Formula, ...]], ...]:
    """Return the saddle-point equations, block by block in the order of solution.

    Returns
    -------
    tuple of (str, tuple of Formula)
        How each block is solved, and its equations.
    """
    found = []
    for block in symbolic.structure.blocks:
        formulas = tuple(
            _equation(equation.unknown, equation.value, equation.residual, symbolic)
            for component in block.components
            for equation in component.core + component.eliminated
        )
        found.append((_solved(block), formulas))
    return tuple(found)


def errors(symbolic: SymbolicModel) -> tuple[Formula, ...]:
    """Return the formulas of the test and of the training error."""
    energy = symbolic.free_energy
    named = (("E_test", energy.test_error), ("E_train", energy.training_error))
    return tuple(
        Formula(sp.Symbol(name), tidy(_abbreviated(value, symbolic))) for name, value in named
    )


def _step(model: SpikedRandomFeatures, symbolic: SymbolicModel) -> list[Section]:
    if model.direct_parameters is not None or model.step_size == 0:
        return []
    try:
        mapping = spike_mapping(
            symbolic.student, symbolic.teacher, stretched=model._case["stretched"]
        )
    except AssumptionError:
        return []
    formulas = (
        Formula(symbols.r, tidy(mapping.spike_strength)),
        Formula(symbols.c, tidy(mapping.bulk_variance)),
        Formula(symbols.gamma, tidy(mapping.alignment)),
    )
    extension = (
        "" if model.derivation.odd_student else " The student is not odd: this is an extension."
    )
    return [
        Section(
            "The giant step (Result 3.1)",
            "Per-neuron step s on n₀ = α₀ d samples turns the rows of the first layer into "
            "spiked random rows √c u + r v, with |u| = |v| = 1 and overlap γ of v with the "
            "teacher's direction; ρ² = 1 − γ²." + extension,
            formulas,
        ),
        *(_correlated_norms(mapping) if symbols.chi in _definitions(symbolic) else ()),
        *(_stretched_rows(mapping) if _stretched(symbolic) else ()),
    ]


def _spectrum(model: SpikedRandomFeatures) -> Section:
    title = "Averages over the spectrum"
    if model.bulk == IID:
        return Section(
            title,
            "X follows the Marchenko–Pastur law of aspect ratio β = p/d. All averages above are "
            "derivatives of this resolvent.",
            (_resolvent(),),
        )
    level = symbols.ridge * symbols.P + symbols.V2_hat
    return Section(
        title,
        f"All are means over the rows of the law {model.bulk!r}, in units of its mean c: "
        "eigenvalues D, overlaps F, G, H where they are given, and penalties P in units of λ. "
        "This is what they hold the inverse of.",
        (Formula(sp.Symbol("S"), level + symbols.V1_hat * symbols.c * symbols.D),),
    )


def _finite_width() -> list[Section]:
    cost = symbols.inverse_width * symbols.m**2 / (2 * symbols.V2)
    return [
        Section(
            "Finite width (derived here)",
            "At width p = 1/p_inv the ridge penalty takes this for the mean of the readout "
            "weights; it is added to the free energy and vanishes for p → ∞.",
            (Formula(sp.Symbol("Delta_f"), cost),),
        )
    ]


def _correlated_norms(mapping: SpikeMapping) -> list[Section]:
    return [
        Section(
            "Correlated norms (a correction to Result 3.1, derived here)",
            "The step makes the squared norm of a bulk row b equal to c + 2 a b·v with the norm "
            "overlap a. This adds a χ(κ) b·v to the mean of a feature, and a χ ϑ to M below, with "
            "χ(κ) = 𝔼 σ″, the response of μ₀ to the norm of a row. Result 3.1 as published has "
            "a = 0.",
            (Formula(symbols.norm_overlap, tidy(mapping.norm_overlap)),),
        )
    ]


def _stretched_rows(mapping: SpikeMapping) -> list[Section]:
    entries = (mapping.stretch_along, mapping.stretch_mixed, mapping.stretch_across)
    return [
        Section(
            "Stretched rows (a correction to Result 3.1, derived here)",
            "The part of the slope of σ that is linear stretches the bulk rows by 1 + t in the "
            "plane of the spike v and of the teacher's direction ζ across it; ϑ and ψ are overlaps "
            "with the bulk before the stretch. Result 3.1 as published has t = 0.",
            tuple(
                Formula(symbol, tidy(entry))
                for symbol, entry in zip(symbols.STRETCH, entries, strict=True)
            ),
        )
    ]


def _stretched(symbolic: SymbolicModel) -> bool:
    return symbols.stretch_along in symbolic.free_energy.free_energy.parameters


def _blocks(symbolic: SymbolicModel) -> list[Section]:
    return [
        Section(f"Saddle point (Result 3.3), block {k}", text, formulas)
        for k, (text, formulas) in enumerate(equations(symbolic), 1)
    ]


def _solved(block: Block) -> str:
    core = [readable(str(e.unknown)) for c in block.components for e in c.core]
    rest = [readable(str(e.unknown)) for c in block.components for e in c.eliminated]
    how = "Linear in" if block.linear else "Solved by Newton's method for"
    first = f"{how} {', '.join(core)}" if core else "Explicit"
    return f"{first}; {', '.join(rest)} follow from {'these' if core else 'what is known'}."


def _abbreviations(symbolic: SymbolicModel) -> tuple[Formula, ...]:
    return tuple(
        Formula(name, value.xreplace({_mean(symbolic): _MEAN}) if name is _ERROR else value)
        for name, value in (
            (_VARIANCE, _variance(symbolic)),
            (_MEAN, _mean(symbolic)),
            (_ERROR, _error(symbolic)),
        )
    )


def _definitions(symbolic: SymbolicModel) -> Mapping[sp.Expr, sp.Expr]:
    return symbolic.free_energy.free_energy.definitions


def _present(expr: sp.Expr, symbolic: SymbolicModel) -> sp.Expr:
    """Drop what the derivation found to vanish identically."""
    known = _definitions(symbolic)
    functions = (
        symbols.mu0, symbols.mu1, symbols.mu2_squared, symbols.chi,
        symbols.T0, symbols.T1, symbols.T2,
    )  # fmt: skip
    found = expr.subs({f: 0 for f in functions if f not in known})
    return found.subs(symbols.m, 0) if symbols.mu0 not in known else found


def _variance(symbolic: SymbolicModel) -> sp.Expr:
    variance = symbols.mu1**2 * symbols.V1 + symbols.mu2_squared * symbols.V2
    return _present(variance, symbolic)


def _mean(symbolic: SymbolicModel) -> sp.Expr:
    mean = symbols.conditional_mean(correlated_norms=True, stretched=_stretched(symbolic))
    return _present(mean, symbolic)


def _error(symbolic: SymbolicModel) -> sp.Expr:
    # Read off the derivation: the test error is 𝔼 of it, less the noise.
    average = symbolic.free_energy.test_error + symbols.noise
    return average.integrand if hasattr(average, "integrand") else average


def _abbreviated(expr: sp.Expr, symbolic: SymbolicModel) -> sp.Expr:
    """Name the conditional error, mean and variance wherever they occur under 𝔼."""
    error, mean, variance = (f(symbolic) for f in (_error, _mean, _variance))

    def named(average: GaussianExpectation) -> sp.Expr:
        found = average.integrand.xreplace({error: _ERROR})
        # A product, such as a mean of one term, would be recognised in places that do not mean it.
        for value, name in ((mean, _MEAN), (variance, _VARIANCE)):
            if value.is_Add:
                found = found.subs(value, name)
        return GaussianExpectation(found, average.variable)

    return expr.replace(lambda e: isinstance(e, GaussianExpectation), named)


def _equation(
    unknown: sp.Symbol, value: sp.Expr | None, residual: sp.Expr, symbolic: SymbolicModel
) -> Formula:
    if value is not None:
        return Formula(unknown, tidy(_abbreviated(value, symbolic)))
    right = tidy(_abbreviated(residual, symbolic))
    # Prefactors of an equation "0 = …" say nothing.
    if isinstance(right, sp.Mul):
        right = right.as_independent(symbols.kappa, GaussianExpectation, as_Add=False)[1]
    return Formula(sp.S.Zero, right)


def _resolvent() -> Formula:
    root = Resolvent(_A, _B, symbols.beta).rewrite(sp.Piecewise).args[0][0]
    x = symbols.eigenvalue
    return Formula(MarchenkoPasturAverage(1 / (_A + _B * x), x, symbols.beta), root)


# ---------------------------------------------------------------------- LaTeX of a model


def model_latex(model: SpikedRandomFeatures) -> str:
    r"""Return the model for a notebook: its spike and its conditional coefficients.

    Returns
    -------
    str
        ``$\displaystyle ...$`` around an ``aligned`` environment.
    """
    lines = []
    try:
        spike = model.spike
    except AssumptionError:
        pass
    else:
        values = (
            (symbols.r, spike.spike_strength),
            (symbols.c, spike.bulk_variance),
            (symbols.gamma, spike.alignment),
            *(
                [(symbols.norm_overlap, spike.norm_overlap)]
                if model._case["correlated_norms"]
                else []
            ),
            *(zip(symbols.STRETCH, spike.stretch, strict=True) if model._case["stretched"] else []),
        )
        lines += [f"{latex(name)} &= {value:.10g}" for name, value in values]
    lines += [
        equation_latex(f.left, f.right, separator="&=") for f in coefficients(model.symbolic())
    ]
    return rf"$\displaystyle {_aligned(lines)}$"


def symbolic_latex(symbolic: SymbolicModel) -> str:
    r"""Return coefficients, saddle-point equations and errors of a symbolic model for a notebook.

    Returns
    -------
    str
        ``$\displaystyle ...$`` around an ``aligned`` environment.
    """
    formulas = [
        *coefficients(symbolic),
        *_abbreviations(symbolic),
        *(formula for _, block in equations(symbolic) for formula in block),
        *errors(symbolic),
    ]
    lines = [equation_latex(f.left, f.right, separator="&=") for f in formulas]
    return rf"$\displaystyle {_aligned(lines)}$"


def equations_latex(model: SpikedRandomFeatures) -> str:
    """Return coefficients, saddle-point equations and errors as LaTeX, one per line.

    Returns
    -------
    str
        Sections headed by comments; each an ``aligned`` environment in display mode.
    """
    parts = []
    for section in sections(model):
        lines = [equation_latex(f.left, f.right, separator="&=") for f in section.formulas]
        parts.append(f"% {section.title}\n\\[\n{_aligned(lines)}\n\\]")
    return "\n\n".join(parts)


def _aligned(lines: list[str]) -> str:
    body = " \\\\\n".join(f"  {line}" for line in lines)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
