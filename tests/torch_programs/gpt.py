# nanoGPT style
import inspect
import math
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class C:
    block_size: int = 16
    vocab_size: int = 32
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32
    dropout: float = 0.0
    bias: bool = False


class LayerNorm(nn.Module):
    def __init__(s, n, bias):
        super().__init__()
        s.weight = nn.Parameter(torch.ones(n))
        s.bias = nn.Parameter(torch.zeros(n)) if bias else None

    def forward(s, x):
        return F.layer_norm(x, s.weight.shape, s.weight, s.bias, 1e-5)


class Attn(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd, bias=c.bias)
        s.c_proj = nn.Linear(c.n_embd, c.n_embd, bias=c.bias)
        s.n_head = c.n_head
        s.n_embd = c.n_embd
        s.flash = hasattr(torch.nn.functional, "scaled_dot_product_attention")
        s.register_buffer(
            "bias", torch.tril(torch.ones(c.block_size, c.block_size)).view(1, 1, c.block_size, c.block_size)
        )

    def forward(s, x):
        B, T, C_ = x.size()
        q, k, v = s.c_attn(x).split(s.n_embd, dim=2)
        k = k.view(B, T, s.n_head, C_ // s.n_head).transpose(1, 2)
        q = q.view(B, T, s.n_head, C_ // s.n_head).transpose(1, 2)
        v = v.view(B, T, s.n_head, C_ // s.n_head).transpose(1, 2)
        y = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=None, dropout_p=0, is_causal=True
        )
        a = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        a = a.masked_fill(s.bias[:, :, :T, :T] == 0, float("-inf"))
        a = F.softmax(a, dim=-1)
        z = a @ v
        assert torch.allclose(y, z, atol=1e-5)
        return s.c_proj(y.transpose(1, 2).contiguous().view(B, T, C_))


class Block(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.ln_1 = LayerNorm(c.n_embd, c.bias)
        s.attn = Attn(c)
        s.ln_2 = LayerNorm(c.n_embd, c.bias)
        s.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(c.n_embd, 4 * c.n_embd),
                "gelu": nn.GELU(),
                "c_proj": nn.Linear(4 * c.n_embd, c.n_embd),
            }
        )

    def forward(s, x):
        x = x + s.attn(s.ln_1(x))
        m = s.mlp
        return x + m.c_proj(m.gelu(m.c_fc(s.ln_2(x))))


class GPT(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(c.vocab_size, c.n_embd),
                "wpe": nn.Embedding(c.block_size, c.n_embd),
                "h": nn.ModuleList([Block(c) for _ in range(c.n_layer)]),
                "ln_f": LayerNorm(c.n_embd, c.bias),
            }
        )
        s.lm_head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        s.transformer.wte.weight = s.lm_head.weight
        s.apply(s._init)
        for pn, p in s.named_parameters():
            if pn.endswith("c_proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * c.n_layer))

    def _init(s, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(m.weight, mean=0.0, std=0.02)

    def forward(s, idx, targets=None):
        device = idx.device
        b, t = idx.size()
        pos = torch.arange(0, t, dtype=torch.long, device=device)
        x = s.transformer.wte(idx) + s.transformer.wpe(pos)
        for b_ in s.transformer.h:
            x = b_(x)
        x = s.transformer.ln_f(x)
        l = s.lm_head(x)
        return l, F.cross_entropy(
            l.view(-1, l.size(-1)), targets.view(-1), ignore_index=-1
        ) if targets is not None else None


torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
device = "cpu"
ctx = nullcontext() if device == "cpu" else torch.amp.autocast(device_type=device, dtype=torch.bfloat16)
scaler = torch.cuda.amp.GradScaler(enabled=False)
m = GPT(C())
fused = "fused" in inspect.signature(torch.optim.AdamW).parameters
dec = [p for n, p in m.named_parameters() if p.dim() >= 2]
nod = [p for n, p in m.named_parameters() if p.dim() < 2]
opt = torch.optim.AdamW(
    [{"params": dec, "weight_decay": 0.1}, {"params": nod, "weight_decay": 0.0}], lr=1e-3, betas=(0.9, 0.95)
)
d = torch.randint(0, 32, (4, 17))
x, y = d[:, :-1].contiguous(), d[:, 1:].contiguous()
x, y = x.pin_memory() if torch.cuda.is_available() else x, y
for _i in range(3):
    for g in opt.param_groups:
        g["lr"] = 1e-3
    with ctx:
        l, loss = m(x, y)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    print(loss.item())
m.eval()
idx = torch.zeros((1, 1), dtype=torch.long)
with torch.no_grad():
    for _ in range(5):
        l, _l = m(idx)
        l = l[:, -1, :] / 0.8
        v, _i = torch.topk(l, min(5, l.size(-1)))
        l[l < v[:, [-1]]] = -float("Inf")
        idx = torch.cat((idx, torch.multinomial(F.softmax(l, dim=-1), num_samples=1)), dim=1)
print(idx.shape, sum(p.numel() for p in m.parameters()))
if hasattr(torch, "compile") and False:
    m = torch.compile(m)
