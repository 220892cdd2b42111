
import torch
import torch.nn.functional as F

x = torch.randn(2, 3)
print(
    x.shape,
    x.size(),
    x.dtype,
    x.device,
    x.layout,
    x.is_sparse,
    x.is_cuda,
    x.is_quantized,
    x.is_meta,
    torch.typename(x),
    x.type(),
)
print(torch.device("cuda:0"), torch.device("cpu") == x.device, torch.get_default_dtype())
print(x.shape[0] * x.shape.numel(), torch.Size([1]) + x.shape, list(x.shape), f"{x.shape}")
assert isinstance(x.shape, torch.Size) and isinstance(x, (torch.FloatTensor, torch.cuda.FloatTensor))
print(F.softmax(x), F.log_softmax(x))
print(F.mse_loss(x, torch.zeros(3)).shape)
print(F.mse_loss(x, torch.zeros(2, 3), size_average=False).shape, torch.nn.MSELoss(reduce=False)(x, x).shape)
print(F.upsample(torch.ones(1, 1, 2, 2), scale_factor=2).shape, F.sigmoid(x).shape, F.tanh(x).shape)
print(torch.tensor([1, 2]).new_tensor([3.5]))
print(
    torch.is_storage(x.storage()),
    torch.manual_seed(3),
    torch.cuda.amp.autocast,
    torch.version.cuda,
    torch.__version__.split(".")[:2],
    torch.backends.cudnn.enabled,
)
torch.set_default_tensor_type(torch.FloatTensor)
torch.set_printoptions(precision=4, sci_mode=False)
print(
    torch.get_num_threads() > 0,
    torch.cuda.device_count(),
    torch.cuda.is_available(),
    torch.hub.get_dir() != "",
)
