"""The spans that leaps and staircases are made of, for any target."""

from __future__ import annotations

import functools

from ..targets import Target
from .activation_mask import DegreeMask
from .conditional_spans import PolynomialSpans, SpanSource


@functools.lru_cache(maxsize=16)
def spans_of(target: Target, mask: DegreeMask | None = None, *, step: int = 1) -> SpanSource:
    """Return what a target shows at a given subspace.

    Parameters
    ----------
    target : Target
    mask : DegreeMask, optional
        Hermite degrees of the target that a student can use; all of them by default.
    step : int
        Step of which the mask is taken, from 1: at the first one all |w| are 1.

    Returns
    -------
    SpanSource
        Exact for polynomials; for other targets ranks are certified from both sides, or stated to
        be undetermined. What was worked out for a target is kept for the next call.
    """
    if target.is_polynomial:
        element = target.expansion.symbol_element
        return PolynomialSpans(element if mask is None else mask.restrict(element, step))
    # Imported here: closed forms need the rules for Gaussian expectations, polynomials none.
    from .certified_spans import ClosedSymbolSpans

    return ClosedSymbolSpans(target, mask, step=step)
