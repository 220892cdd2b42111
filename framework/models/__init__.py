"""Models that are often begun with, under the parameter names of published weights (``load_weights``)."""

from ..config.listing import listing as _listing
from .generative import DCGANDiscriminator as DCGANDiscriminator
from .generative import DCGANGenerator as DCGANGenerator
from .gpt2 import GPT2 as GPT2
from .gpt2 import GPT2Config as GPT2Config
from .mobilenet import MobileNetV2 as MobileNetV2
from .mobilenet import mobilenet_v2 as mobilenet_v2
from .resnet import ResNet as ResNet
from .resnet import resnet18 as resnet18
from .resnet import resnet34 as resnet34
from .resnet import resnet50 as resnet50
from .small import MLP as MLP
from .small import CharRNN as CharRNN
from .small import LeNet as LeNet
from .unet import UNet as UNet
from .vgg import VGG as VGG
from .vgg import vgg11 as vgg11
from .vgg import vgg13 as vgg13
from .vgg import vgg16 as vgg16
from .vgg import vgg19 as vgg19
from .vit import VisionTransformer as VisionTransformer
from .vit import vit_b_16 as vit_b_16
from .weights import load_weights as load_weights

__dir__ = _listing(globals())
