# char-rnn / LSTM LM
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.5, tie=True):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.nhid, self.nlayers = nhid, nlayers

    def forward(self, x, h):
        e = self.drop(self.encoder(x))
        o, h = self.rnn(e, h)
        d = self.decoder(self.drop(o))
        return F.log_softmax(d.view(-1, d.size(2)), dim=1), h

    def init_hidden(self, bsz):
        w = next(self.parameters())
        return (w.new_zeros(self.nlayers, bsz, self.nhid), w.new(self.nlayers, bsz, self.nhid).zero_())


def repackage(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage(v) for v in h)


torch.manual_seed(0)
m = RNNModel(20, 16, 16, 2)
data = torch.randint(20, (35, 4), dtype=torch.long)
h = m.init_hidden(4)
crit = nn.NLLLoss()
lr = 20
for i in range(0, 30, 10):
    m.zero_grad()
    h = repackage(h)
    o, h = m(data[i : i + 10], h)
    l = crit(
        o,
        data[i + 1 : i + 11].reshape(-1)[: o.size(0)]
        if o.size(0) == 40
        else data[i + 1 : i + 11].view(-1)[:40],
    )
    l.backward()
    torch.nn.utils.clip_grad_norm_(m.parameters(), 0.25)
    for p in m.parameters():
        p.data.add_(p.grad, alpha=-lr)
    print(l.item(), math.exp(min(l.item(), 20)))
w = torch.multinomial(o[-1].squeeze().div(1.0).exp().cpu(), 1)[0]
print(w.item())
