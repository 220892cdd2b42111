"""Named tuples that ops with several results return, under the names PyTorch gives them."""

from collections import namedtuple

max = namedtuple("max", "values indices")
min = namedtuple("min", "values indices")
aminmax = namedtuple("aminmax", "min max")
median = namedtuple("median", "values indices")
kthvalue = namedtuple("kthvalue", "values indices")
sort = namedtuple("sort", "values indices")
topk = namedtuple("topk", "values indices")
cummax = namedtuple("cummax", "values indices")
cummin = namedtuple("cummin", "values indices")
nanmedian = namedtuple("nanmedian", "values indices")
mode = namedtuple("mode", "values indices")
histogramdd = namedtuple("histogramdd", "hist bin_edges")
histogram = namedtuple("histogram", "hist bin_edges")
frexp = namedtuple("frexp", "mantissa exponent")
