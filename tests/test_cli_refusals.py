"""What each command refuses: one line that names the flag, and nothing is printed or written."""

import shlex

import pytest

# In the order of the line: the command, what is wrong with it, and words of the answer.
REFUSED = r"""
frob                                            | frob
verify no-such-claim                            | no-such-claim
verify none.py                                  | claims are names or Python files, and & is none
claims cui-3.11                                 | did you mean 'cui-3.1'
verify --certified bulk-spread                  | no proof by intervals: bulk-spread

curve --student tanhh                           | student 'tanhh' & did you mean 'tanh'
curve --teacher 2z                              | teacher '2z' & write 2*z
curve --student "<escape>[31mz"                 | student
curve --ridge 0                                 | --ridge & positive & --ridge 0.1
curve --ridge nan                               | --ridge & not a number
curve --ridge ten                               | --ridge & 'ten'
curve --alpha 0.5,-1                            | --alpha & '-1'
curve --alpha inf                               | --alpha & finite
curve --alpha ,                                 | no number is given
curve --alpha 1:2                               | --alpha & START:STOP:COUNT
curve --alpha 2:1:5                             | --alpha & below
curve --alpha 1:2:9999999                       | --alpha & too many
curve --beta -2                                 | --beta & positive
curve --alpha0 0                                | --alpha0 & positive
curve --noise -1                                | --noise & >= 0
curve --step-size -inf                          | --step-size & -inf
curve --seeds 1                                 | --seeds & >= 2
curve --seeds 2.5                               | --seeds & whole number
curve --dimension 999999999999999999999999      | --dimension & whole number
curve --student relu                            | relu & odd & --allow-non-odd
curve --simulate --dimension 3                  | --dimension
curve --simulate --alpha0 inf                   | --alpha0 & simulated
curve --cache-folder file/cache                 | cache folder
curve --out file/curve.html                     | --out
curve --out missing/curve.html                  | --out
curve --out curve.txt                           | --out & .html
curve --simulate --store file/store             | --store
curve --frobnicate                              | --frobnicate
curve --stud tanh                               | --stud
curve --teacher                                 | --teacher
curve --convention dimension --table-only       | give that, too
curve --learning-rate 1 --step-size 1           | not both
curve --alpha0 inf --optimal --table-only       | use a finite alpha0
solve --digits 99999                            | digits
solve --alpha 1,2                               | --alpha
solve --step-size 1e9                           | smaller --step-size
solve --learning-rate 1 --convention dim        | sqrt-dimension
solve --width 0                                 | --width
solve --certify --out x.txt                     | --out: must end in .png
solve --certify=yes                             | --certify

optimal --ridge 1                               | --ridge is what is optimised
optimal --what step-size --step-size 1          | --step-size is what is optimised
optimal --what step-size --learning-rate 1      | --learning-rate is what
optimal --what step-size --digits 9             | --digits refines a ridge penalty
optimal --what beta                             | --what
optimal --bounds 3                              | is not LOW:HIGH
optimal --bounds 3:2                            | LOW has to be below HIGH
optimal --bounds 0:2                            | both ends must be positive and finite
optimal --bounds a:2                            | is not a number
optimal --alpha x                               | --alpha
optimal --joint --ridge 1                       | leave out --ridge
optimal --joint --learning-rate 1               | leave out --learning-rate
optimal --joint --digits 9                      | leave out --digits
optimal --step-bounds 0.1:2                     | --step-bounds belongs to --joint

srf figure 9 --json                             | must be one of 1
srf figure 2 --json --dimension 50              | multiple of 20
srf figure 3                                    | a figure needs a file: add --out figure3.png
srf curve --fractions 0.5,0.5                   | --letters
srf curve --letters 1,x                         | not a number
srf curve --labels sign                         | --labels belongs to --loss
srf curve --loss "foo("                         | foo(
srf curve --bulk /nowhere/law.json              | cannot read '/nowhere/law.json'
srf curve --bulk law.json --letters 1,2         | a law has one letter
srf curve --bulk law.json --simulate            | how rows are drawn
srf curve --bulk law.json --leading-order complete | exclude each other
srf phase --x foo=1:2:3                         | NAME
srf phase --x ridge=1:2:3 --y ridge=1:2:3       | differ
srf bounds --out x.doc                          | --out
srf bounds --tune-step --digits 9               | --digits
srf bounds --tune-step --step-size 2            | --step-size
srf bounds --tune-step --correlated-norms       | --leading-order
srf bounds --ridge 0.1                          | --ridge
srf bounds --width 100                          | --width
srf spectrum --ridge 0.1                        | --ridge
srf spectrum --points 2                         | --points

one-step risk --alpha nan                       | not a number
one-step risk --step-size -1                    | --step-size
one-step risk --noise-variance -0.1             | --noise-variance
one-step risk --ridge -0.1                      | --ridge
one-step risk --ridge 0.1 --paper-ridge 0.1     | one penalty
one-step risk --over ridge --paper-ridge 0.1    | one penalty
one-step risk --ridge 1 --paper-ridge 1 --over alpha=1:2:3 | are one penalty
one-step risk --over alpha --alpha 2            | axis
one-step risk --alpha 1,2 --beta 1,2            | several values
one-step risk --over alpha --beta 1,2           | several values
one-step risk --over gamma                      | NAME
one-step risk --over alpha=1:2:1e9              | whole number
one-step risk --over alpha=1:2:1                | COUNT
one-step risk --over alpha --digits 9           | --digits
one-step risk --simulate --digits 9             | --digits
one-step risk --features gaussian               | --features is about --simulate
one-step risk --over alpha --store folder       | --simulate
one-step risk --simulate --store /proc/folder   | --store
one-step risk --steps 2 --over alpha            | --steps
one-step risk --steps 0                         | --steps
one-step risk --fresh                           | --steps
one-step risk --alpha0 inf --simulate           | alpha0
one-step risk --out point.doc                   | --out
one-step risk --over alpha --out /nowhere/x.png | --out
one-step risk --student relu                    | --centre
one-step risk --loss hinge                      | --loss
one-step risk --over alpha --certify --table-only | --certify is for one point
one-step risk --simulate --certify              | --certify is about the theory
one-step spectrum --store here                  | --store is about --simulate
one-step phase --x alpha=1:2:3                  | differ
one-step phase --x ridge=1:2:3 --ridge 0.1      | one penalty
one-step optimal --alpha 1,2 --digits 9         | --digits
one-step optimal --ridge 0.1                    | --ridge

expand                                          | COMMAND
expand srf                                      | SERIES
expand srf large_alpha                          | choose from
expand mlp large-alpha                          | choose from
expand srf large-alpha --alpha 2                | --alpha: large-alpha is a series in the number
expand srf small-ridge --ridge 1                | --ridge: small-ridge is a series
expand srf small-step --step-size 1             | --step-size: small-step
expand srf small-step --learning-rate 1         | --learning-rate: small-step
expand one-step small-step --step-size 0        | --step-size: small-step
expand one-step large-alpha --order -1          | --order
expand one-step large-alpha --order 21          | --order: must be at most 20
expand one-step large-alpha --digits 1000000    | --digits: must be at most 1000
expand one-step large-alpha --at 0              | --at
expand one-step large-alpha --output tset_error | output
expand one-step large-alpha --out x.csv         | --out: must end in .png
expand one-step large-alpha --plot x.gif        | --plot: must end in .png, .pdf, .svg
expand one-step large-alpha --plot no/such/x.png | cannot write to folder

hermite                                         | EXPR
hermite foo                                     | activation 'foo'
hermite z+1 --order -1                          | --order
hermite erf(a*z)                                | unknown name 'a'
hermite erf(a*z) --parameter a                  | --parameter needs NAME:KIND
hermite erf(a*z) --parameter a:purple           | purple
hermite erf(a*z) --parameter a:real --certified | --certified needs numbers
expect u*v --joint 2                            | correlation
expect u*v --joint u                            | rename the parameter
expect u*v --joint -3/2                         | from -1 to 1
expect u*v --joint nan                          | nan
expect u*v --joint relu                         | relu
expect exp(z**2)                                | does not
expect z --parameter z:real                     | 'z' is a Gaussian variable
expect a*z --parameter a:real --parameter a:positive | a is declared twice
expect u*v --joint rho --variances 1            | --variances
expect u*v --joint 0.5 --variances 1            | needs two values with a comma
expect z --means 0,1                            | --joint
gradient relu x1 --norm nan                     | nan
gradient relu x1 --remove ,,                    | --remove
gradient relu x1 --remove a                     | --remove
gradient relu "x1 +"                            | target
gradient relu x1 x2                             | give one TARGET

leap "x1 - x1"                                  | is constant
leap x1 --direction 1,0                         | --direction needs 1 components
leap x1 --direction a                           | --direction
leap x1 --direction ""                          | --direction needs components with commas
leap x1 --direction 1,,2                        | --direction needs components with commas
leap x1 --direction 0                           | direction must not be zero
leap x1 --out leap.nc                           | --out: must end in .png, .pdf, .svg, .html, .json
leap a*x1 --parameter a --parameter a           | names 'a' twice
leap a*x1 --parameter a --direction 1           | without parameters
staircase 2                                     | has no coordinates
staircase x1 --order 99                         | from 1 to 64
staircase x1 --variant lazy                     | --variant
staircase x1 --biases                           | name its activation
staircase x1 --readout ,                        | --readout needs numbers
staircase x1 --readout x                        | --readout
staircase x1 --out page.txt                     | .html, .json
staircase x1 --out /nowhere/at/all/page.html    | '/nowhere/at/all'
staircase x1+a*x1*x2                            | --parameter a
staircase x1*a --parameter a:odd                | declared 'odd'
staircase x1 --parameter x1                     | x1 is a coordinate
project x1+x2                                   | one of the arguments --onto --regimes is required
project x1+x2 --onto 1                          | --onto needs rows of 2 numbers, but row 1 has 1
project x1+x2 --onto 0,0                        | row 1, (0, 0), is zero
project x1+x2 --onto 1,                         | has an empty entry
project x1+x2 --onto 1,1 --steps 2              | --steps belongs to --regimes
project x1+x2 --regimes --degree 1              | --degree belongs to --onto
project x1+x2 --regimes --exponents 1,sqrt(2)   | --exponents must be rational
project x1+x2 --regimes --exponents 0,1         | > 0
project x1+x2 --regimes --steps 1000            | steps must be from 0 to 100
project x1+x2 --regimes --out a.txt             | --out: must end in .png, .pdf
project x1 --onto 1 --out no/a.json             | cannot write to folder 'no'

giant-steps x1 --dimension 50                   | --dimension belongs to --simulate; add --simulate
giant-steps x1 --preprocess                     | --preprocess belongs to --simulate
giant-steps x1 --steps 1000                     | --steps must be from 0 to 100
giant-steps x1 --exponent 1000                  | --exponent must be from 1 to 64
giant-steps x1 --readout signs                  | --readout belongs to --simulate
giant-steps x1 --out nowhere/a.html             | --out: cannot write to folder 'nowhere'
giant-steps x1 --simulate --out a.txt           | --out: must end in .png, .pdf, .svg, .html, .json
giant-steps x1 --simulate --step-size 0         | positive and finite, got '0'; use --step-size 1
giant-steps x1 --simulate --readout one         | 'one' is not a number; use --readout 0.5,1,2
giant-steps x1 --simulate --samples-factor 1e300 | is no number of samples; change --samples-fac
giant-steps x1 --simulate --ridge 1             | is the penalty of a regression; give --ridge-s
giant-steps x1 --simulate --store file          | --store: folder & cannot be written to
giant-steps x1 --simulate --ridge-samples 5     | --ridge-samples 5 are too few to hold out a fif
giant-steps x1 --simulate --seeds 0             | must be >= 1
giant-steps "x1 +" --simulate                   | target

kernel                                          | MODEL is missing
kernel other                                    | other
kernel --list --out models.html                 | --list writes no file
kernel one-gradient-step --target pascal        | --target
kernel one-gradient-step --target numba --out k.f90 | another language than numba
kernel one-gradient-step --target c --out k.jl  | suffix of another language than c
kernel one-gradient-step --out k.f77            | --out must end in .py, .c, .h, .jl, .f90
kernel one-gradient-step --out sk.cpp           | --out must end in .py, .c, .h, .jl, .f90
kernel ridge-regression --student tanh          | --student belongs to spiked-random-features
kernel one-gradient-step --target c --stage blocks | no meaning for --stage blocks
kernel one-gradient-step --tables baked --stage program | --tables baked has no meaning
kernel spiked-random-features --at alpha=1 --out k.c | --at gives values for --tables
kernel spiked-random-features --tables baked --at alignment | NAME=NUMBER
kernel spiked-random-features --tables baked --at alignment=x | 'x' is not a number
kernel spiked-random-features --tables baked --at alignment=0.5 | need the value of
kernel <baked> --at bulk_variance=-1 --at alignment=0 | bulk_variance must be pos
kernel <baked> --at bulk_variance=1 --at alignment=2 | alignment is outside its
kernel spiked-random-features --tables baked --at no=1 | no parameter of the tables
kernel one-gradient-step --out /                | is a folder
kernel one-gradient-step --out /dev/null/k.c    | /dev/null/k
kernel one-gradient-step --target c --out 'a"b.c' | cannot include each other
kernel one-gradient-step --stage blocks --out /no/such/folder/x | /no/such/folder
kernel file.py:nothing                          | has nothing named 'nothing'

conjecture x>0 --over x=0:1 --dimension 2       | belongs to random targets
conjecture x>0 --over x=0:1 --set alpha=2       | --set belongs to --model
conjecture test_error>0 --over alpha=1:2 --model srf --set alfa=2 | --set:
dynamics erf(x1) --start 1.2                    | --self and --start are those of no rows
dynamics erf(x1) --seeds 3                      | --seeds belongs to --simulate
explore srf --set alpha                         | --set must be NAME=VALUE
explore srf --port x                            | --port

explor                                          | did you mean explore?
curv                                            | did you mean curve?
srf fase                                        | did you mean phase?
curve --ridg 1                                  | did you mean --ridge?
curve --hlep                                    | did you mean --help?
one-step risk --nois 1                          | did you mean --noise?
kernel one-gradient-stp                         | did you mean one-gradient-step?
curve --loss x                                  | --loss x; see giantstep --help
"""
BAKED = "spiked-random-features --tables baked --at spike_strength=1 --at noise_variance=0"
REFUSED = REFUSED.replace("<escape>", "\x1b").replace("<baked>", BAKED)
ROWS = [line.split("|", 1) for line in REFUSED.splitlines() if line]


@pytest.mark.parametrize(("line", "words"), ROWS, ids=[row[0].strip() for row in ROWS])
def test_refusals_take_one_line(run, tmp_path, monkeypatch, line, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "file.py").touch()
    code, out, err = run(*shlex.split(line))
    assert (code, out) == (2, "")
    assert err.startswith("giantstep: ") and err.endswith("\n") and err[:-1].isprintable()
    for text in words.split("&"):
        assert text.strip() in err
    assert {path.name for path in tmp_path.iterdir()} == {"file", "file.py"}
