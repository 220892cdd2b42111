"""Transforms of images: pillow images and tensors (..., C, H, W), with torchvision's names."""

from ...config.listing import listing as _listing
from . import functional as functional
from .base import Compose as Compose
from .base import Lambda as Lambda
from .base import RandomApply as RandomApply
from .base import RandomChoice as RandomChoice
from .base import RandomOrder as RandomOrder
from .base import Transform as Transform
from .color import ColorJitter as ColorJitter
from .color import Grayscale as Grayscale
from .color import RandomGrayscale as RandomGrayscale
from .convert import ConvertImageDtype as ConvertImageDtype
from .convert import Normalize as Normalize
from .convert import PILToTensor as PILToTensor
from .convert import ToPILImage as ToPILImage
from .convert import ToTensor as ToTensor
from .geometry import CenterCrop as CenterCrop
from .geometry import Pad as Pad
from .geometry import RandomCrop as RandomCrop
from .geometry import RandomErasing as RandomErasing
from .geometry import RandomHorizontalFlip as RandomHorizontalFlip
from .geometry import RandomResizedCrop as RandomResizedCrop
from .geometry import RandomRotation as RandomRotation
from .geometry import RandomVerticalFlip as RandomVerticalFlip
from .geometry import Resize as Resize
from .images import InterpolationMode as InterpolationMode

__dir__ = _listing(globals(), "functional")
