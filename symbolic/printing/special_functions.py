"""Functions by target: what each is called in the text, and the definitions that it needs.

A function is known to a target by a name that its language has, such as ``math.erf``, or by a
helper: a definition that a self-contained file carries along. Helpers are accurate to a few units
in the last place on their whole domain and neither overflow nor cancel where the result does not
(:mod:`.scalar_helpers`, :mod:`.vector_helpers`; for mpmath
:mod:`giantstep.runtime.precise_functions`, which evaluate the functions here, too).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from ...errors import EmissionError, ParameterError
from ..expressions.functions import (
    OwenT,
    erf_difference,
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    relu,
    sigmoid,
    softplus,
)
from .runtime_text import runtime_text
from .scalar_helpers import C_HELPERS, FORTRAN_HELPERS, JULIA_HELPERS, PYTHON_HELPERS
from .vector_helpers import JAX_HELPERS, NUMPY_HELPERS, TORCH_HELPERS

PREFIX = "fn_"
"""Names of helpers begin with it, and no other name in a generated file does."""

_ELEMENTARY = (
    sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.asin, sp.acos, sp.atan, sp.sinh, sp.cosh, sp.tanh,
    sp.asinh, sp.acosh, sp.atanh, sp.erf, sp.erfc, expm1, log1p,
)  # fmt: skip
# Helper of each function that is no elementary one; a target may have the function itself.
_HELPED: Mapping[type, str] = {
    relu: "fn_relu",
    sigmoid: "fn_sigmoid",
    softplus: "fn_softplus",
    sp.sech: "fn_sech",
    sp.sign: "fn_sign",
    sp.Heaviside: "fn_step",
    log_cosh: "fn_log_cosh",
    erfcx: "fn_erfcx",
    normal_cdf: "fn_normal_cdf",
    log_normal_cdf: "fn_log_normal_cdf",
    erf_difference: "fn_erf_difference",
    OwenT: "fn_owen_t",
}
_NUMPY_SPELLING = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh",
}  # fmt: skip


def _table(prefix: str, own: Mapping[str, str]) -> dict[str, str]:
    found = {f.__name__: f"{prefix}{f.__name__}" for f in _ELEMENTARY}
    found |= {f.__name__: helper for f, helper in _HELPED.items()}
    return {**found, "sqrt": f"{prefix}sqrt", "Abs": "abs", "Max": "max", "Min": "min", **own}


def _array_names(prefix: str) -> dict[str, str]:
    """Return what modules of arrays call otherwise."""
    own = {"Abs": "abs", "sign": "sign", "Max": "maximum", "Min": "minimum", **_NUMPY_SPELLING}
    return {**{name: f"{prefix}{own[name]}" for name in own}, "erfc": "fn_erfc"}


_NAMES: dict[str, dict[str, str]] = {
    "python": _table("math.", {}),
    "numpy": _table("np.", {**_array_names("np."), "erf": "scipy.special.erf"}),
    "mpmath": _table("ctx.", {"sign": "ctx.sign", "sech": "ctx.sech"}),
    "c": _table("", {"Abs": "fabs", "Max": "fmax", "Min": "fmin"}),
    "jax": _table("jnp.", {**_array_names("jnp."), "erf": "jax.scipy.special.erf"}),
    "torch": _table(
        "torch.",
        {**_array_names("torch."), "erfc": "torch.erfc", "Max": "fn_max", "Min": "fn_min"},
    ),
    "fortran": _table(
        "",
        {"Max": "larger", "Min": "smaller", "expm1": "c_expm1", "log1p": "c_log1p"},
    ),
    "julia": _table("", {"erf": "fn_erf", "erfc": "fn_erfc", "sign": "sign"}),
}
_PRECISE = runtime_text("precise_functions").split("\n\n\n")
_HELPERS: dict[str, dict[str, str]] = {
    "python": dict(PYTHON_HELPERS),
    "numpy": dict(NUMPY_HELPERS),
    "mpmath": {text[4 : text.index("(")]: f"{text}\n" for text in _PRECISE},
    "c": dict(C_HELPERS),
    "jax": dict(JAX_HELPERS),
    "torch": dict(TORCH_HELPERS),
    "julia": dict(JULIA_HELPERS),
    "fortran": dict(FORTRAN_HELPERS),
}
_CLASSES: dict[str, type] = {
    f.__name__: f for f in (*_ELEMENTARY, *_HELPED, sp.Abs, sp.Max, sp.Min)
}
_CALLABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

TARGETS = tuple(_NAMES)
"""Targets that differ in their functions; "numba" has those of "python"."""


def _functions_of(target: str) -> str:
    found = "python" if target == "numba" else target
    if found not in _NAMES:
        raise EmissionError(f"target must be one of numba, {', '.join(TARGETS)}, got {target!r}")
    return found


def names(target: str) -> Mapping[str, str]:
    """Return {name of the SymPy class: what the text of the target calls}, a live view."""
    return MappingProxyType(_NAMES[_functions_of(target)])


def helpers(target: str) -> Mapping[str, str]:
    """Return {name of the helper: its definition in the target's language}, a live view."""
    return MappingProxyType(_HELPERS[_functions_of(target)])


def is_known(function: type) -> bool:
    """Whether at least one target knows the class of a SymPy function."""
    known = _CLASSES.get(function.__name__)
    return known is not None and issubclass(function, known)


def known_functions(target: str | None = None) -> tuple[str, ...]:
    """Return the names of the functions that a target knows, or any target; sorted.

    Examples
    --------
    >>> "erfcx" in known_functions("c"), "gamma" in known_functions()
    (True, False)
    """
    if target is None:
        return tuple(sorted(_CLASSES))
    found = _NAMES[_functions_of(target)]
    return tuple(sorted(name for name in _CLASSES if name in found))


def register_function(function: type[sp.Function], **texts: str | tuple[str, str] | None) -> None:
    """Teach the lowering a function, for as many targets as there are texts given.

    Each text is the name that the target calls, such as ``"math.gamma"``, or a pair of a name that
    begins with ``fn_`` and the definition of that helper in the target's language. The helper may
    call helpers that exist; "python" serves "numba" too and has to compile there.

    Parameters
    ----------
    function : subclass of sympy.Function
        Its ``fdiff`` gives the derivatives that Newton's method needs, in known functions.
    **texts : str or (str, str)
        By target: python, numpy, mpmath, c, jax, julia, fortran, torch.
        In numpy code vectorised, on ``np`` and ``scipy.special``; in mpmath code with the functions
        of a context ``ctx``; in JAX code on ``jnp`` and ``jax``; in C ``static double`` functions
        on ``<math.h>``; in Fortran functions of ``real(dp)``.

    Raises
    ------
    ParameterError
        If a name is none, a definition does not define it, or the function is known already with
        another text.

    Examples
    --------
    >>> class log_gamma(sp.Function):
    ...     def fdiff(self, argindex=1):
    ...         return sp.digamma(self.args[0])
    >>> register_function(log_gamma, python="math.lgamma", c="lgamma", mpmath="ctx.loggamma")
    >>> "log_gamma" in known_functions("numba"), "log_gamma" in known_functions("numpy")
    (True, False)
    """
    if not (isinstance(function, type) and issubclass(function, sp.Function)):
        raise ParameterError(
            f"register_function takes a subclass of sympy.Function, not {function!r}; "
            "give the class itself, as sympy.loggamma, not an applied function"
        )
    name = function.__name__
    if not _is_same(_CLASSES.get(name, function), function):
        raise ParameterError(f"another function is known by the name {name!r}; rename the class")
    unknown = ", ".join(sorted(set(texts) - set(TARGETS)))
    given = {target: text for target, text in texts.items() if text is not None}
    if unknown or not given:
        what = f"knows no target {unknown}" if unknown else "has no text for any target"
        raise ParameterError(
            f"register_function({name}) {what}; give one of "
            f"{', '.join(f'{target}=' for target in TARGETS)}"
        )
    checked = {t: _checked(name, t, *_parts(name, t, text)) for t, text in given.items()}
    for target, (called, definition) in checked.items():
        _CLASSES[name] = function
        _NAMES[target][name] = called
        if definition:
            _HELPERS[target][called] = definition


def _is_same(known: type, function: type) -> bool:
    """Whether both are one class, or the second is the first defined again, as in a notebook."""
    return known == function or (
        known not in (*_ELEMENTARY, *_HELPED)
        and not known.__module__.startswith("sympy.")
        and (known.__module__, known.__qualname__) == (function.__module__, function.__qualname__)
    )


def _parts(name: str, target: str, text: object) -> tuple[str, str]:
    if isinstance(text, str):
        return text, ""
    if isinstance(text, tuple) and len(text) == 2 and all(isinstance(t, str) for t in text):
        return text
    raise ParameterError(
        f"{target} text of {name!r} has to be a name or a pair (name, definition), got {text!r}"
    )


def _checked(name: str, target: str, called: str, definition: str) -> tuple[str, str]:
    if not _CALLABLE.fullmatch(called):
        raise ParameterError(f"{target} text of {name!r}: {called!r} is no name of a function")
    known = _HELPERS[target].get(called)
    if not definition and called.startswith(PREFIX) and known is None:
        raise ParameterError(f"{target} has no helper {called!r}; give (name, definition)")
    if definition:
        if not called.startswith(PREFIX) or f"{called}(" not in definition:
            raise ParameterError(
                f"{target} definition of {name!r} has to define a function whose name begins with "
                f"{PREFIX!r}, and {called!r} is not such a name in it"
            )
        if known not in (None, definition):
            raise ParameterError(f"{target} has another helper {called!r}; choose another name")
    if _NAMES[target].get(name, called) != called:
        raise ParameterError(
            f"{target} knows {name!r} as {_NAMES[target][name]!r} already; it cannot be replaced"
        )
    return called, definition


def helper_texts(target: str, text: str) -> list[str]:
    """Return the definitions of the helpers that `text` calls, each after those that it calls."""
    return called_definitions(_HELPERS[_functions_of(target)], text)


def called_definitions(table: Mapping[str, str], text: str) -> list[str]:
    """Return those of a table of definitions that `text` calls, each after those that it calls."""
    ordered: dict[str, str] = {}

    def visit(code: str, within: frozenset[str]) -> None:
        called = set(re.findall(r"\b(\w+)\(", code))
        for name in table:
            if name in called and name not in ordered and name not in within:
                visit(table[name], within | {name})
                ordered[name] = table[name]

    visit(text, frozenset())
    return list(ordered.values())
