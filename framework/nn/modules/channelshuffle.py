"""Where PyTorch programs look for ChannelShuffle: names only."""

from ..flatten import ChannelShuffle as ChannelShuffle
