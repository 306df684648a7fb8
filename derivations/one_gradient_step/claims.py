"""Claims about one gradient step in the proportional limit, of all its parts."""

from __future__ import annotations

from .claims_kernel import CLAIMS as KERNEL_CLAIMS
from .claims_large import CLAIMS as LARGE_CLAIMS
from .claims_risk import CLAIMS as RISK_CLAIMS
from .claims_spike import CLAIMS as SPIKE_CLAIMS

CLAIMS = (*SPIKE_CLAIMS, *KERNEL_CLAIMS, *RISK_CLAIMS, *LARGE_CLAIMS)
