"""The transforms as functions of an image and settings, without randomness: torchvision's names."""

from .color import adjust_brightness as adjust_brightness
from .color import adjust_contrast as adjust_contrast
from .color import adjust_hue as adjust_hue
from .color import adjust_saturation as adjust_saturation
from .color import to_grayscale as to_grayscale
from .images import InterpolationMode as InterpolationMode
from .images import center_crop as center_crop
from .images import convert_image_dtype as convert_image_dtype
from .images import crop as crop
from .images import erase as erase
from .images import hflip as hflip
from .images import normalize as normalize
from .images import pad as pad
from .images import pil_to_tensor as pil_to_tensor
from .images import resize as resize
from .images import resized_crop as resized_crop
from .images import rotate as rotate
from .images import to_pil_image as to_pil_image
from .images import to_tensor as to_tensor
from .images import vflip as vflip
