"""The normal distribution: its integral, the inverse, and erf in other forms."""

from ..language.elementwise import elementwise

erfinv = elementwise("erfinv", "x", "erfinv(x)", """The inverse of the error function on (-1, 1).
    >>> fw.erfinv(fw.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """, vjp={"x": "gate(g * 0.8862269254527580, exp(out * out))"}, result="float", jvp="symmetric",
    float32_on_a_gpu=True)
erfcx = elementwise("erfcx", "x", "erfcx(x)", """The scaled complement of erf, safe for large x.

    ``exp(x * x) * erfc(x)``, computed without the overflow.

    >>> fw.special.erfcx(fw.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4276])
    """, namespace="special", method=False,
    vjp={"x": "gate(g, 2 * x * out - 1.1283791670955126)"}, result="float", jvp="symmetric")
ndtr = elementwise("ndtr", "x", "ndtr(x)",
    """The distribution function of the standard normal distribution.
    >>> fw.special.ndtr(fw.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """, namespace="special", method=False,
    vjp={"x": "g * (0.3989422804014327 * exp(-0.5 * (x * x)))"}, result="float", jvp="symmetric")
ndtri = elementwise("ndtri", "x", "ndtri(x)", """The inverse of the normal distribution function.
    >>> fw.special.ndtri(fw.tensor([0.5, 0.8413]))
    tensor([0.0000, 0.9998])
    """, namespace="special", method=False,
    vjp={"x": "gate(g * 2.5066282746310002, exp(0.5 * (out * out)))"}, result="float", jvp="symmetric")
log_ndtr = elementwise("log_ndtr", "x", "log_ndtr(x)",
    """The logarithm of the normal distribution function, accurate far below 0.
    >>> fw.special.log_ndtr(fw.tensor([0.0, -10.0]))
    tensor([ -0.6931, -53.2313])
    """, namespace="special", method=False,
    vjp={"x": "over(g * 0.7978845608028654, erfcx(x * -0.7071067811865476))"},
    result="float", jvp="symmetric")
