"""What a program spends its time and memory on: ops forward and backward, by name, line and module.

>>> with fw.profiler.profile() as prof:
...     _ = (fw.ones(3) * 2).sum()
>>> [row.key for row in prof.key_averages() if row.count]
['make ones', 'mul', 'sum']
"""

from ..config.listing import listing as _listing
from .averages import Average as Average
from .averages import Averages as Averages
from .profile import ProfilerActivity as ProfilerActivity
from .profile import kineto_available as kineto_available
from .profile import profile as profile
from .profile import supported_activities as supported_activities
from .profile import tensorboard_trace_handler as tensorboard_trace_handler
from .recorder import record_function as record_function
from .schedule import ProfilerAction as ProfilerAction
from .schedule import schedule as schedule

__dir__ = _listing(globals(), "")
