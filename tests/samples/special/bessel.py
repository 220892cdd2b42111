"""Rows of the Bessel functions. The values at ``AT`` were computed with mpmath to 17 digits."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row
from . import unary

AT = np.array([0.05, 0.7, 1.9, 4.3, 11.0, 24.0, 30.0, 55.0])
KNOWN = {
    "bessel_j0": (
        0.99937509764946858,
        0.8812008886074053,
        0.28181855937438552,
        -0.36101111723653514,
        -0.17119030040719609,
        -0.056230274166859267,
        -0.086367983581040211,
        -0.074548302648236823,
    ),
    "bessel_j1": (
        0.024992188313759701,
        0.32899574154005893,
        0.58115707271343407,
        -0.17189656022154042,
        -0.1767852989567215,
        -0.15403806518312122,
        -0.11875106261662294,
        -0.078250038308684659,
    ),
    "bessel_y0": (
        -1.9793110008172096,
        -0.19066492933739512,
        0.49681997128382019,
        -0.12959590289091977,
        -0.16884732389207954,
        -0.15283402879758778,
        -0.11729573168666403,
        -0.077569178730412649,
    ),
    "bessel_y1": (
        -12.78985517117497,
        -1.1032498719076334,
        -0.16440577233159531,
        0.34839375831399851,
        0.16370553741494285,
        0.053059776121202169,
        0.084425570661747235,
        0.073846265432577888,
    ),
    "modified_bessel_k0": (
        3.1142340294719898,
        0.6605198599151016,
        0.12884597927604749,
        0.0079879660317645239,
        6.2430205476536771e-6,
        9.6088187808331157e-12,
        2.1324774964630564e-14,
        2.1913102183534151e-25,
    ),
    "modified_bessel_k1": (
        19.909674325882505,
        1.050283535312918,
        0.15966015303266763,
        0.0088722071885913994,
        6.5208606745808861e-6,
        9.8069989304411444e-12,
        2.1677320018915494e-14,
        2.2111422716117465e-25,
    ),
    "scaled_modified_bessel_k0": (
        3.2739042225345419,
        1.3301236562420557,
        0.86145061675175579,
        0.5887114486204242,
        0.37379549700110816,
        0.25452917420902206,
        0.22788666561625373,
        0.16861661579540994,
    ),
    "scaled_modified_bessel_k1": (
        20.930465157060079,
        2.1150113128480525,
        1.06747092981457,
        0.65387983945925684,
        0.39043093613491642,
        0.25977879239569978,
        0.2316541293777118,
        0.17014264970730715,
    ),
    "i0e": (
        0.95182403579097663,
        0.55930552650706833,
        0.31824316288914158,
        0.19902325712922598,
        0.1217301681665896,
        0.081868288334030614,
        0.073145946482237294,
        0.053916898493938759,
    ),
    "i1": (
        0.025007813313844472,
        0.37187967777700863,
        1.4482443730548888,
        12.821892795648571,
        6948.8586598121632,
        2122947893.2873138,
        768532038938.957,
        4.1108986452992798e22,
    ),
    "i1e": (
        0.02378816786654957,
        0.18466998276274732,
        0.21661191117477052,
        0.17397460904587165,
        0.1160577581698902,
        0.080144139276534738,
        0.071916330598647555,
        0.053424475195194519,
    ),
}
ODD = {"bessel_j1", "i1", "i1e"}
POLES = {
    "bessel_y0": -np.inf,
    "bessel_y1": -np.inf,
    **dict.fromkeys(
        (
            "modified_bessel_k0",
            "modified_bessel_k1",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
        ),
        np.inf,
    ),
}


def _bessel(name: str) -> None:
    def call(M: Any, x: Any) -> Any:
        return getattr(M.special, name)(x)

    def known(x: Any) -> Any:
        return np.array(KNOWN[name])

    def left(x: Any) -> Any:
        return -known(x) if name in ODD else known(x)

    ends = (
        [
            Sample(
                "ends", call, (np.array([0.0, -1.0]),), lambda x: np.array([POLES[name], np.nan]), grad=False
            )
        ]
        if name in POLES
        else [
            Sample("left of 0", call, (-AT,), left, grad=False, tol=10.0),
            Sample("at 0", call, (np.zeros(1),), lambda x: np.full(1, name not in ODD) * 1.0, grad=False),
        ]
    )
    row(
        name,
        Sample(
            "known",
            call,
            (AT,),
            known,
            grad=False,
            torch=name[:8] not in ("bessel_j", "bessel_y"),
            why="PyTorch's are accurate to 1e-8",
        ),
        Sample("near", call, (AT,), known, grad=False, tol=10.0, why="the same for PyTorch's"),
        Sample(
            "slopes",
            call,
            (AT[1:5],),
            lambda x: known(x)[1:5],
            torch=name in ("i0e", "i1", "i1e"),
            why="PyTorch has no derivative",
        ),
        Sample(
            "int",
            lambda M, x: call(M, x).double(),
            (np.array([11, 24]),),
            lambda x: known(x)[4:6],
            tol=1e3,
            torch=False,
            why="ints are computed in float32, and PyTorch less accurately",
        ),
        *ends,
        namespace="special",
        errors=[("list", lambda M: call(M, [1.0]), TypeError, "list")],
    )


for _name in KNOWN:
    _bessel(_name)


def _i0(x: Any) -> Any:
    return np.i0(x)


unary("i0", _i0, normal(2, 3) * 3, "framework",
      Sample("large", lambda M, x: M.i0(x), (np.array([-24.0, 26.0, 40.0]),), _i0))
row(
    "spherical_bessel_j0",
    Sample(
        "plain",
        lambda M, x: M.special.spherical_bessel_j0(x),
        (3 * normal(3, 4),),
        lambda x: np.sin(x) / x,
        torch=False,
        why="PyTorch has no derivative",
    ),
    Sample(
        "at 0",
        lambda M, x: M.special.spherical_bessel_j0(x),
        (np.zeros(1),),
        lambda x: np.ones(1),
        torch=False,
        why="as above",
    ),
    Sample(
        "values",
        lambda M, x: M.special.spherical_bessel_j0(x),
        (3 * normal(5),),
        lambda x: np.sin(x) / x,
        grad=False,
    ),
    namespace="special",
    errors=[("list", lambda M: M.special.spherical_bessel_j0([1.0]), TypeError, "list")],
)
