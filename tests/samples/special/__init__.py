"""Rows of the rooms in ops/special, and what the files share."""

from typing import Any

from ..base import Sample, row


def unary(name: str, ref: Any, x: Any, namespace: str, *more: Sample, tol: float = 1.0) -> None:
    """The row of a function of one argument, under framework or framework.special."""
    def call(M: Any, x: Any) -> Any:
        return getattr(getattr(M, namespace) if namespace == "special" else M, name)(x)
    samples = [Sample("plain", call, (x,), ref, tol=tol), Sample("0-dim", call, (x[0, 0],), ref, tol=tol),
               Sample("empty", call, (x[:, :0],), lambda x: x)]
    if namespace == "framework":
        samples += [Sample("method", lambda M, x: getattr(x, name)(), (x,), ref, tol=tol),
                    Sample("in place", lambda M, x: getattr(x.clone(), f"{name}_")(), (x,), ref, tol=tol)]
    row(name, *samples, *more, namespace=namespace,
        errors=[("list", lambda M: call(M, [1.0]), TypeError, "list")])
