"""The name under which a user knows this package: what shapes, dtypes and messages print."""

package = "framework"  # "torch" under framework.as_torch
