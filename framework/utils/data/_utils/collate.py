"""PyTorch's inner place for what makes batches."""

import re

from ....data import default_collate as default_collate
from ....data import default_convert as default_convert

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of NumPy's dtypes that do not stack
