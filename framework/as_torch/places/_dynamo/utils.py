"""``torch._dynamo.utils``: what libraries ask."""


def is_compile_supported(device_type: str) -> bool:
    """False: nothing is compiled."""
    return False
