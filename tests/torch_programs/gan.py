# GAN / old habits
import torch
import torch.nn as nn
from torch.autograd import Variable

cuda = bool(torch.cuda.is_available())
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor


def weights_init(m):
    c = m.__class__.__name__
    if c.find("Linear") != -1:
        torch.nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif c.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0.0)


G = nn.Sequential(
    nn.Linear(16, 32), nn.BatchNorm1d(32, 0.8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 64), nn.Tanh()
)
D = nn.Sequential(nn.Linear(64, 32), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 1), nn.Sigmoid())
G.apply(weights_init)
D.apply(weights_init)
loss = torch.nn.BCELoss()
if cuda:
    G.cuda()
og = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
od = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
import numpy as np

for _i in range(3):
    imgs = torch.rand(8, 64)
    valid = Variable(Tensor(imgs.size(0), 1).fill_(1.0), requires_grad=False)
    fake = Variable(Tensor(imgs.shape[0], 1).fill_(0.0), requires_grad=False)
    real = Variable(imgs.type(Tensor))
    og.zero_grad()
    z = Variable(Tensor(np.random.normal(0, 1, (imgs.shape[0], 16))))
    g = G(z)
    gl = loss(D(g), valid)
    gl.backward()
    og.step()
    od.zero_grad()
    dl = (loss(D(real), valid) + loss(D(g.detach()), fake)) / 2
    dl.backward()
    od.step()
    print(f"[D loss: {dl.item():f}] [G loss: {gl.item():f}]")
