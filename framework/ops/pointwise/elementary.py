"""The elementary functions: exponentials, logarithms, roots, trigonometry."""

from typing import Any

from ..language.elementwise import elementwise

_FLOAT: dict[str, Any] = {"result": "float", "jvp": "symmetric"}


def _unary(name: str, line: str, vjp: str, *, ufunc: str | None, shown: str,
           values: str = "[0.5, 1.0]", alias: str = "", expr: str | None = None,
           complex: bool = True, float32_on_a_gpu: bool = False) -> Any:
    example = f"    >>> fw.{name}(fw.tensor({values}))\n    tensor({shown})\n    "
    return elementwise(name, "x", expr or f"{name}(x)", f"{line}\n{example}", vjp={"x": vjp},
                       ufunc=ufunc, alias=alias, method=alias or True, complex=complex,
                       float32_on_a_gpu=float32_on_a_gpu, **_FLOAT)


exp = _unary("exp", "The exponential function.", "gate(g, out)", ufunc="exp", shown="[1.6487, 2.7183]",
             float32_on_a_gpu=True)
exp2 = _unary("exp2", "Two to the power of the element.", "gate(g * 0.6931471805599453, out)",
              ufunc=None, shown="[1.4142, 2.0000]")
expm1 = _unary("expm1", "exp(x) - 1, accurate near 0.", "gate(g, out + 1)", ufunc="expm1",
               shown="[0.6487, 1.7183]", float32_on_a_gpu=True)
log = _unary("log", "The natural logarithm.", "over(g, x)", ufunc="log", shown="[-0.6931,  0.0000]",
             float32_on_a_gpu=True)
log2 = _unary("log2", "The logarithm to base 2.", "over(g, x * 0.6931471805599453)", ufunc="log2",
              shown="[-1.,  0.]", float32_on_a_gpu=True)
log10 = _unary("log10", "The logarithm to base 10.", "over(g, x * 2.302585092994046)", ufunc="log10",
               shown="[-0.3010,  0.0000]", float32_on_a_gpu=True)
log1p = _unary("log1p", "log(1 + x), accurate near 0.", "over(g, x + 1)", ufunc="log1p",
               shown="[0.4055, 0.6931]", float32_on_a_gpu=True)
sqrt = _unary("sqrt", "The square root.", "over(g, 2 * out)", ufunc="sqrt", values="[4.0, 9.0]",
              shown="[2., 3.]")
rsqrt = _unary("rsqrt", "One over the square root.", "gate(gate(gate(-0.5 * g, out), out), out)", ufunc=None,
               expr="1 / sqrt(x)", values="[4.0, 16.0]", shown="[0.5000, 0.2500]", float32_on_a_gpu=True)
sin = _unary("sin", "The sine of an angle in radians.", "g * cos(x)", ufunc="sin",
             shown="[0.4794, 0.8415]")
cos = _unary("cos", "The cosine of an angle in radians.", "-g * sin(x)", ufunc="cos",
             shown="[0.8776, 0.5403]")
tan = _unary("tan", "The tangent of an angle in radians.", "g * (1 + out * out)", ufunc="tan",
             shown="[0.5463, 1.5574]", float32_on_a_gpu=True)
asin = _unary("asin", "The angle whose sine is the element.", "over(g, sqrt(1 - x * x))",
              ufunc="arcsin", alias="arcsin", shown="[0.5236, 1.5708]", float32_on_a_gpu=True)
acos = _unary("acos", "The angle whose cosine is the element.", "over(-g, sqrt(1 - x * x))",
              ufunc="arccos", alias="arccos", shown="[1.0472, 0.0000]", float32_on_a_gpu=True)
atan = _unary("atan", "The angle whose tangent is the element.", "g / (1 + x * x)", ufunc="arctan",
              alias="arctan", shown="[0.4636, 0.7854]")
sinh = _unary("sinh", "The hyperbolic sine.", "gate(g, cosh(x))", ufunc="sinh", shown="[0.5211, 1.1752]",
              float32_on_a_gpu=True)
cosh = _unary("cosh", "The hyperbolic cosine.", "gate(g, sinh(x))", ufunc="cosh",
              shown="[1.1276, 1.5431]", float32_on_a_gpu=True)
tanh = _unary("tanh", "The hyperbolic tangent.", "g * (1 - out * out)", ufunc="tanh",
              shown="[0.4621, 0.7616]")
asinh = _unary("asinh", "The inverse hyperbolic sine.", "g / sqrt(1 + x * x)", ufunc="arcsinh",
               alias="arcsinh", shown="[0.4812, 0.8814]")
acosh = _unary("acosh", "The inverse hyperbolic cosine.", "over(g, sqrt(x - 1) * sqrt(x + 1))",
               ufunc="arccosh", alias="arccosh", values="[1.0, 2.0]", shown="[0.0000, 1.3170]")
atanh = _unary("atanh", "The inverse hyperbolic tangent.", "over(g, 1 - x * x)", ufunc="arctanh",
               alias="arctanh", values="[0.0, 0.5]", shown="[0.0000, 0.5493]")
sigmoid = _unary("sigmoid", "The logistic function 1 / (1 + exp(-x)).", "g * (out * (1 - out))",
                 ufunc=None, shown="[0.6225, 0.7311]")
erf = _unary("erf", "The error function.", "g * (1.1283791670955126 * exp(-(x * x)))", ufunc=None,
             shown="[0.5205, 0.8427]", complex=False)
erfc = _unary("erfc", "One minus the error function, accurate for large x.",
              "g * (-1.1283791670955126 * exp(-(x * x)))", ufunc=None, shown="[0.4795, 0.1573]",
              complex=False)


hypot = elementwise("hypot", "x y", "hypot(x, y)",
    """The length of the vector (x, y), safe from overflow.
    >>> fw.hypot(fw.tensor([3.0]), fw.tensor([4.0]))
    tensor([5.])
    """, ufunc="hypot", vjp={"x": "gate(over(g, out), x)", "y": "gate(over(g, out), y)"})
logaddexp = elementwise("logaddexp", "x y", "logaddexp(x, y)", """log(exp(x) + exp(y)), safe from overflow.
    >>> fw.logaddexp(fw.tensor([0.0]), fw.tensor([0.0]))
    tensor([0.6931])
    """, ufunc="logaddexp", result="float", method="logaddexp",
    vjp={"x": "g * sigmoid(x - y)", "y": "g * sigmoid(y - x)"})


deg2rad = elementwise("deg2rad", "x", "x * 0.017453292519943295", """Degrees in radians.
    >>> fw.deg2rad(fw.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """, result="float", vjp={"x": "g * 0.017453292519943295"}, jvp="linear")
rad2deg = elementwise("rad2deg", "x", "x * 57.29577951308232", """Radians in degrees.
    >>> fw.rad2deg(fw.tensor([0.0, 3.1415927]))
    tensor([  0., 180.])
    """, result="float", vjp={"x": "g * 57.29577951308232"}, jvp="linear")
logaddexp2 = elementwise("logaddexp2", "x y", "logaddexp2(x, y)",
    """log2(2**x + 2**y), safe from overflow.
    >>> fw.logaddexp2(fw.tensor([0.0]), fw.tensor([0.0]))
    tensor([1.])
    """, ufunc="logaddexp2", result="float",
    vjp={"x": "g * sigmoid((x - y) * 0.6931471805599453)",
         "y": "g * sigmoid((y - x) * 0.6931471805599453)"})
