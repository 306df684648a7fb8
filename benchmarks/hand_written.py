"""The solver of the spiked model at tanh and sin as a careful user would write it in numba.

The algorithm is that of the generated kernel: Newton's method in two logarithms, exact solves of
the rest, three rules for the error. Every pass over the nodes is written out by hand.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

HAND_OUTPUTS = (
    "test_error", "training_error", "V1", "V2", "V2_hat", "V1_hat", "m", "theta", "theta_hat",
    "psi_hat", "psi", "q1", "q2", "q2_hat", "q1_hat", "test_error_magnitude",
    "training_error_magnitude",
)  # fmt: skip
_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(fastmath=_FAST, **_FLAGS)
def hand_solve(
    alpha, beta, ridge, noise, c, w, kappa, mu0, mu1, mu2, t0, t1, t2, v1, v2, rough, out, info
):
    """Newton in log V, two 2x2 systems, the errors; written from the equations, by hand."""
    ratio = alpha / beta
    n = len(w)
    iterations = 0
    converged = False
    previous = 1e300
    close = 2e-15
    while iterations < 500:
        iterations += 1
        s1 = s2 = j11 = j12 = j22 = 0.0
        for j in range(n):
            a1 = mu1[j] * mu1[j]
            a2 = mu2[j]
            f = 1.0 / (1.0 + v1 * a1 + v2 * a2)
            f1 = a1 * f
            f2 = a2 * f
            g1 = w[j] * f1
            g2 = w[j] * f2
            s1 += g1
            s2 += g2
            j11 += g1 * f1
            j12 += g1 * f2
            j22 += g2 * f2
        v1_hat = ratio * s1
        v2_hat = ratio * s2
        a = ridge + v2_hat
        bc = v1_hat * c
        t = a + bc * (1.0 - beta)
        root = math.sqrt(t * t + 4.0 * beta * bc * a)
        to2 = 2.0 / (t + root) if t >= 0.0 else (root - t) / (2.0 * beta * bc * a)
        x = 1.0 / (1.0 + beta * bc * to2)
        to1 = c * to2 * x
        r22 = to2 / (a + bc * x * x)
        r12 = c * x * x * r22
        r11 = c * c * x * x * r22 * (x + beta * a * to2)
        k11 = ratio * (r11 * j11 + r12 * j12)
        k12 = ratio * (r11 * j12 + r12 * j22)
        k21 = ratio * (r12 * j11 + r22 * j12)
        k22 = ratio * (r12 * j12 + r22 * j22)
        y1 = 1.0 / to1
        y2 = 1.0 / to2
        res1 = math.log(v1 * y1)
        res2 = math.log(v2 * y2)
        m11 = 1.0 - y1 * k11 * v1
        m12 = -y1 * k12 * v2
        m21 = -y2 * k21 * v1
        m22 = 1.0 - y2 * k22 * v2
        size = max(abs(res1), abs(res2))
        if size <= close or (size < 1e-10 and size >= previous / 2):
            converged = True
            break
        close = max(close, rough * size)
        previous = size
        det = 1.0 / (m11 * m22 - m12 * m21)
        v1 *= math.exp(-min(max((res1 * m22 - m12 * res2) * det, -8.0), 8.0))
        v2 *= math.exp(-min(max((m11 * res2 - res1 * m21) * det, -8.0), 8.0))
    residual = size
    amplification = max(abs(m22) + abs(m12), abs(m11) + abs(m21)) / abs(m11 * m22 - m12 * m21)

    a00 = a01 = a11 = b0 = b1 = p1 = 0.0
    for j in range(n):
        f = w[j] / (1.0 + v1 * mu1[j] * mu1[j] + v2 * mu2[j])
        kmu = kappa[j] * mu1[j]
        f0 = f * mu0[j]
        f1 = f * kmu
        a00 += f0 * mu0[j]
        a01 += f0 * kmu
        a11 += f1 * kmu
        b0 += f0 * t0[j]
        b1 += f1 * t0[j]
        p1 += f * mu1[j] * t1[j]
    a11 += 1.0 / (alpha * c * to2)
    det = 1.0 / (a00 * a11 - a01 * a01)
    m = (b0 * a11 - a01 * b1) * det
    theta = (a00 * b1 - a01 * b0) * det
    residual = max(residual, linear_residual(a00, a01, m, theta, b0))
    residual = max(residual, linear_residual(a01, a11, m, theta, b1))
    psi_hat = ratio * p1
    psi = beta * v1 * psi_hat
    theta_hat = theta / (beta * c * v2)

    b1 = b2 = 0.0
    for j in range(n):
        a1 = mu1[j] * mu1[j]
        f = 1.0 / (1.0 + v1 * a1 + v2 * mu2[j])
        mean = m * mu0[j] + theta * kappa[j] * mu1[j]
        err = t2[j] - 2.0 * t0[j] * mean - 2.0 * psi * mu1[j] * t1[j] + mean * mean
        e = w[j] * err * f * f
        b1 += e * a1
        b2 += e * mu2[j]
    b1 = ratio * b1 + beta * psi_hat * psi_hat
    b2 = ratio * b2 + beta * c * theta_hat * theta_hat
    z1 = r11 * b1 + r12 * b2
    z2 = r12 * b1 + r22 * b2
    det = 1.0 / ((1.0 - k11) * (1.0 - k22) - k12 * k21)
    q1 = (z1 * (1.0 - k22) + k12 * z2) * det
    q2 = ((1.0 - k11) * z2 + z1 * k21) * det
    residual = max(residual, linear_residual(1.0 - k11, -k12, q1, q2, z1))
    residual = max(residual, linear_residual(-k21, 1.0 - k22, q1, q2, z2))

    test = train = q1_hat = q2_hat = test_size = train_size = 0.0
    abs_m = abs(m)
    abs_theta = abs(theta)
    abs_psi = abs(psi)
    for j in range(n):
        a1 = mu1[j] * mu1[j]
        f = 1.0 / (1.0 + v1 * a1 + v2 * mu2[j])
        mean = m * mu0[j] + theta * kappa[j] * mu1[j]
        own = a1 * q1 + mu2[j] * q2
        e = t2[j] - 2.0 * t0[j] * mean - 2.0 * psi * mu1[j] * t1[j] + mean * mean + own
        abs_mu1 = abs(mu1[j])
        mean = abs_m * abs(mu0[j]) + abs_theta * abs(kappa[j]) * abs_mu1
        s = abs(t2[j]) + mean * (mean + 2.0 * abs(t0[j])) + own
        s += 2.0 * abs_psi * abs_mu1 * abs(t1[j])
        e *= w[j]
        s *= w[j]
        f *= f
        test += e
        test_size += s
        train_size += s * f
        e *= f
        train += e
        q1_hat += e * a1
        q2_hat += e * mu2[j]
    out[0] = test - noise
    out[1] = train
    out[2] = v1
    out[3] = v2
    out[4] = v2_hat
    out[5] = v1_hat
    out[6] = m
    out[7] = theta
    out[8] = theta_hat
    out[9] = psi_hat
    out[10] = psi
    out[11] = q1
    out[12] = q2
    out[13] = ratio * q2_hat
    out[14] = ratio * q1_hat
    out[15] = test_size + noise
    out[16] = train_size
    info[0] = iterations if converged else -iterations
    info[1] = residual
    info[2] = 2.220446049250313e-16 * (8 + 4 * amplification)


@njit(inline="always", **_FLAGS)
def linear_residual(a, b, x, y, right):
    """Return the residual of one row of a linear system relative to its terms."""
    size = abs(a * x) + abs(b * y) + abs(right)
    return abs(a * x + b * y - right) / size if size > 0 else 0.0


@njit(**_FLAGS)
def hand_batch(parameters, fine, medium, coarse, results, errors, info):
    """Solve every row with three rules, of which the coarser two estimate the error."""
    fw, fk, f0, f1, f2, f3, f4, f5 = (
        fine[0], fine[1], fine[2], fine[3], fine[4], fine[5], fine[6], fine[7]
    )  # fmt: skip
    mw, mk, m0, m1, m2, m3, m4, m5 = (
        medium[0], medium[1], medium[2], medium[3], medium[4], medium[5], medium[6], medium[7]
    )  # fmt: skip
    cw, ck, c0, c1, c2, c3, c4, c5 = (
        coarse[0], coarse[1], coarse[2], coarse[3], coarse[4], coarse[5], coarse[6], coarse[7]
    )  # fmt: skip
    x, y, z = np.empty(17), np.empty(17), np.empty(17)
    state, unused = np.empty(3), np.empty(3)
    for i in range(parameters.shape[0]):
        alpha, beta, ridge = parameters[i, 0], parameters[i, 1], parameters[i, 2]
        noise, c = parameters[i, 3], parameters[i, 5]
        hand_solve(
            alpha, beta, ridge, noise, c, fw, fk, f0, f1, f2, f3, f4, f5,
            c / ridge, 1 / ridge, 0.0, x, state,
        )  # fmt: skip
        hand_solve(
            alpha, beta, ridge, noise, c, mw, mk, m0, m1, m2, m3, m4, m5,
            x[2], x[3], 1e-3, y, unused,
        )  # fmt: skip
        hand_solve(
            alpha, beta, ridge, noise, c, cw, ck, c0, c1, c2, c3, c4, c5,
            x[2], x[3], 1e-3, z, unused,
        )  # fmt: skip
        last, first = 0.0, 1e-300
        for k, size in ((2, x[2]), (3, x[3]), (0, x[15]), (1, x[16])):
            scale = 1 / (size + 1e-300)
            last = max(last, abs(x[k] - y[k]) * scale)
            first = max(first, abs(y[k] - z[k]) * scale)
        gain = 10.0 * last / first
        if not gain < 1.0:
            gain = 1.0
        for k in range(17):
            size = abs(x[k])
            results[i, k] = x[k]
            errors[i, k] = gain * max(abs(x[k] - y[k]), 0.1 * last * size) + state[2] * size
        errors[i, 0] += 2e-15 * x[15]
        errors[i, 1] += 2e-15 * x[16]
        info[i, 0], info[i, 1], info[i, 2] = state[0], state[1], state[2]
