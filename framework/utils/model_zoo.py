"""The old place of ``hub.load_state_dict_from_url``, where programs also find ``tqdm``."""

from tqdm import tqdm as tqdm

from ..config.listing import own as _own
from ..hub import load_state_dict_from_url as load_url

load_state_dict_from_url = load_url


__dir__ = _own(globals(), "load_state_dict_from_url load_url")
