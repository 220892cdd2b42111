"""Where PyTorch programs look for recurrent layers: names only."""

from ..rnn import GRU as GRU
from ..rnn import LSTM as LSTM
from ..rnn import RNN as RNN
from ..rnn import RNNBase as RNNBase
from ..rnn_cell import GRUCell as GRUCell
from ..rnn_cell import LSTMCell as LSTMCell
from ..rnn_cell import RNNCell as RNNCell
from ..rnn_cell import RNNCellBase as RNNCellBase
