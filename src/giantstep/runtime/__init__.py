"""What generated kernels run on, in this process and as a copy in the files that carry them.

Quadrature rules in NumPy, and the solver to any number of digits in mpmath. Modules here know no
other part of giantstep but its errors: :mod:`giantstep.symbolic` copies their text into files, word
for word, :mod:`giantstep.numeric` and :mod:`giantstep.derivations` import them.
"""
