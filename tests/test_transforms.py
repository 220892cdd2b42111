"""Transforms: pillow images and tensors give the same, settings are checked, random ones are seeded."""

import pickle

import numpy as np
import pytest

import framework as fw
from framework.data import transforms as T
from framework.data.transforms import functional as F
from framework.errors import DTypeError, ShapeError

Image = pytest.importorskip("PIL.Image", reason="needs pillow")


def picture(h=13, w=9, channels=3, seed=0):
    shape = (h, w, channels) if channels > 1 else (h, w)
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, shape, np.uint8))


def smooth(h=24, w=32):
    y, x = np.mgrid[0:h, 0:w]
    waves = [np.sin(x / 5) * np.cos(y / 7), np.cos(x / 4), np.sin(y / 3)]
    return Image.fromarray((127 + 100 * np.stack(waves, -1)).astype(np.uint8))


def pixels(image):
    """(C, H, W) whole numbers of either kind of image."""
    return (image if isinstance(image, fw.Tensor) else F.pil_to_tensor(image)).numpy().astype(int)


def both(image):
    return image, F.pil_to_tensor(image)


SAME = {  # deterministic transforms: (transform, how far tensor and pillow may be apart)
    "resize": (T.Resize((7, 5)), 1),
    "resize up": (T.Resize((30, 40)), 1),
    "resize short side": (T.Resize(6), 1),
    "resize bicubic": (T.Resize((9, 12), "bicubic"), 1),
    "resize with max_size": (T.Resize(10, max_size=12), 1),
    "center crop": (T.CenterCrop((6, 4)), 0),
    "center crop of a small image": (T.CenterCrop((30, 41)), 0),
    "pad": (T.Pad((1, 2, 3, 4), fill=7), 0),
    "pad edge": (T.Pad(3, padding_mode="edge"), 0),
    "pad reflect": (T.Pad((2, 3), padding_mode="reflect"), 0),
    "pad symmetric": (T.Pad((4, 1), padding_mode="symmetric"), 0),
    "hflip": (T.RandomHorizontalFlip(1.0), 0),
    "vflip": (T.RandomVerticalFlip(1.0), 0),
    "rotate right angle": (T.RandomRotation((90, 90), expand=True), 0),
    "rotate": (T.RandomRotation((30, 30), fill=9), 120),
    "gray": (T.Grayscale(3), 1),
    "brightness": (T.ColorJitter(brightness=(1.3, 1.3)), 1),
    "contrast": (T.ColorJitter(contrast=(0.4, 0.4)), 1),
    "saturation": (T.ColorJitter(saturation=(1.8, 1.8)), 2),
    "hue": (T.ColorJitter(hue=(0.2, 0.2)), 14),
}


@pytest.mark.parametrize("name", SAME)
def test_tensor_is_like_pillow(name):
    transform, apart = SAME[name]
    image, tensor = both(smooth())
    a, b = pixels(transform(image)), pixels(transform(tensor))
    assert a.shape == b.shape
    difference = abs(a - b)
    assert difference.max() <= apart
    assert difference.mean() <= max(0.5, apart / 20), "only single pixels may be further apart"


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(5, 4), (31, 40), (13, 3)])
def test_resize_like_torch(antialias, mode, size):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(1).normal(size=(2, 3, 13, 9))
    got = F.resize(fw.tensor(x), size, mode, antialias=antialias).numpy()
    want = torch.nn.functional.interpolate(torch.tensor(x), size, mode=mode, antialias=antialias)
    np.testing.assert_allclose(got, want.numpy(), atol=1e-10)


def test_resize_has_a_gradient():
    x = fw.randn(1, 6, 5, dtype=fw.float64, requires_grad=True)
    assert fw.autograd.gradcheck(lambda t: F.resize(t, (3, 8)), (x,))


def test_nearest_takes_pixels():
    x = fw.arange(12).reshape(1, 3, 4)
    assert F.resize(x, (6, 8), "nearest").tolist() == np.repeat(np.repeat(x.numpy(), 2, 1), 2, 2).tolist()


def test_to_tensor_and_back():
    for channels in (1, 3):
        image = picture(channels=channels)
        t = T.ToTensor()(image)
        assert t.shape == (channels, 13, 9) and t.dtype is fw.float32 and t.is_contiguous()
        np.testing.assert_array_equal(t.numpy(), pixels(image).astype(np.float32) / np.float32(255))
        back = T.ToPILImage()(t)
        assert abs(pixels(back) - pixels(image)).max() == 0 and back.mode == image.mode
    assert T.ToTensor()(Image.new("1", (2, 2), 1)).tolist() == [[[1.0, 1.0], [1.0, 1.0]]]
    assert T.ToTensor()(Image.fromarray(np.array([[1.5, 2.5]], np.float32))).tolist() == [[[1.5, 2.5]]]
    assert T.ToPILImage()(fw.zeros(4, 2, 2)).mode == "RGBA"
    for bad in (fw.zeros(5, 2, 2), np.zeros((2, 2, 3), np.float64)):
        with pytest.raises(DTypeError, match="pillow has no image"):
            T.ToPILImage()(bad)


def test_dtypes_keep_the_range():
    x = fw.tensor([0, 128, 255], dtype=fw.uint8)
    up = F.convert_image_dtype(x, fw.float64)
    np.testing.assert_allclose(up.numpy(), np.array([0, 128, 255]) / 255)
    assert F.convert_image_dtype(up, fw.uint8).tolist() == [0, 128, 255]
    assert F.convert_image_dtype(fw.tensor([-0.5, 2.0]), fw.uint8).tolist() == [0, 255]
    assert F.convert_image_dtype(fw.tensor([127], dtype=fw.int8), fw.int16).item() == 127 * 256
    assert F.convert_image_dtype(x, fw.uint8) is x


def test_filters_by_their_enumeration():
    x = fw.rand(1, 6, 6)
    enumerated = pickle.loads(pickle.dumps(T.Resize(3, T.InterpolationMode.BICUBIC)))
    assert (enumerated(x) == T.Resize(3, "bicubic")(x)).all()


def test_masks_stay_masks():
    mask = fw.tensor([[True, True, False, False]] * 4)
    assert T.Resize(2)(mask).tolist() == [[True, False]] * 2
    assert T.ConvertImageDtype(fw.float32)(mask)[0].tolist() == [1, 1, 0, 0]


def test_normalize():
    x = fw.randn(2, 3, 4, 5)
    got = T.Normalize([0.1, 0.2, 0.3], [1.0, 2.0, 4.0])(x)
    want = (x.numpy() - np.array([0.1, 0.2, 0.3], np.float32).reshape(3, 1, 1)) / np.array(
        [1, 2, 4], np.float32).reshape(3, 1, 1)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    y = x.clone()
    assert T.Normalize([0.5], [0.5], inplace=True)(y) is y
    with pytest.raises(ShapeError, match="mean has 2 numbers, the image has 3 channels"):
        T.Normalize([0, 0], [1, 1, 1])(x)
    with pytest.raises(ValueError, match="std has a 0"):
        T.Normalize([0], [0])(x)
    with pytest.raises(TypeError, match="ToTensor"):
        T.Normalize([0], [1])(picture())


RANDOM = [
    T.RandomCrop(6, padding=2), T.RandomCrop((20, 20), pad_if_needed=True), T.RandomResizedCrop(8),
    T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.RandomRotation(40), T.RandomGrayscale(0.5),
    T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomApply([T.Pad(1)]), T.RandomOrder([T.Pad(1), T.Resize(9)]),
    T.RandomChoice([T.Pad(1), T.Pad(2), T.Pad(3)], [0.2, 0.3, 0.5]),
    T.RandomErasing(0.9, value="random"),
]


@pytest.mark.parametrize("transform", RANDOM, ids=lambda t: type(t).__name__)
def test_random_is_seeded_and_pickles(transform):
    """The same seed gives the same images, also from an unpickled copy; other seeds give others."""
    image = F.to_tensor(picture())
    copy = pickle.loads(pickle.dumps(transform))
    assert repr(copy) == repr(transform)

    def run(t, seed):
        fw.manual_seed(seed)
        return [t(image).numpy() for _ in range(12)]

    for a, b in zip(run(transform, 3), run(copy, 3)):
        np.testing.assert_array_equal(a, b)
    different = [a.shape != b.shape or (a != b).any() for a, b in zip(run(transform, 3), run(transform, 4))]
    assert any(different)


def test_random_resized_crop_stays_in_bounds():
    """Shares of the area and proportions are those that were asked for."""
    fw.manual_seed(0)
    transform = T.RandomResizedCrop(8, scale=(0.2, 0.5), ratio=(0.5, 2.0))
    for _ in range(300):
        top, left, h, w = transform._part(50, 70)
        assert 0 <= top <= 50 - h and 0 <= left <= 70 - w
        assert 0.18 <= h * w / 3500 <= 0.52 and 0.45 <= w / h <= 2.2
    assert T.RandomResizedCrop(4, (1.0, 1.0), (9.0, 9.0))._part(10, 100) == (0, 5, 10, 90)


def test_flip_probability():
    fw.manual_seed(1)
    x = fw.arange(2).reshape(1, 1, 2)
    flips = sum(T.RandomHorizontalFlip(0.25)(x)[0, 0, 0].item() for _ in range(2000))
    assert 420 < flips < 580


def test_erasing():
    fw.manual_seed(2)
    x = fw.ones(3, 20, 20)
    y = T.RandomErasing(1.0, scale=(0.1, 0.2), value=[7.0, 8.0, 9.0])(x)
    assert (x == 1).all() and (y != x).any()
    for channel, value in zip(y.numpy(), (7, 8, 9)):
        assert set(np.unique(channel)) == {1.0, float(value)} and 0.05 < (channel != 1).mean() < 0.25
    z = T.RandomErasing(1.0, inplace=True)(x)
    assert z is x and (x == 0).any()


def jpeg(tmp_path, size=(400, 300)):
    path = tmp_path / "a.jpg"
    smooth(size[1], size[0]).save(path, quality=95)
    return path


def test_jpeg_is_decoded_at_reduced_scale(tmp_path):
    """An undecoded JPEG gives, up to its own coding noise, what the whole image gives."""
    path = jpeg(tmp_path)
    lazy, whole = Image.open(path), Image.open(path)
    whole.load()
    a, b = pixels(T.Resize((30, 40))(lazy)), pixels(T.Resize((30, 40))(whole))
    assert lazy.size == (100, 75), "decoded at a quarter: still more than twice the wanted size"
    assert whole.size == (400, 300)
    assert abs(a - b).max() <= 4
    fw.manual_seed(3)
    c = pixels(T.RandomResizedCrop(20)(Image.open(path)))
    fw.manual_seed(3)
    assert abs(c - pixels(T.RandomResizedCrop(20)(whole))).mean() <= 2


def test_compose_shows_its_parts():
    t = T.Compose([T.Resize(4), T.RandomApply([T.ToTensor()], 0.5)])
    resize = "Resize(size=4, interpolation='bilinear', max_size=None, antialias=True)"
    assert repr(t) == (f"Compose(\n    {resize}\n"
                       "    RandomApply(\n        ToTensor()\n    )\n)")


@pytest.mark.parametrize("make, text", [
    (lambda: T.Resize(0), "size must be a positive int or two"),
    (lambda: T.Resize((3, 4, 5)), "size must be a positive int or two"),
    (lambda: T.Resize(3, "cubic"), "interpolation must be one of 'nearest'"),
    (lambda: T.Resize(5, max_size=4), "max_size=4"),
    (lambda: T.RandomHorizontalFlip(1.5), "p must be a number in [0, 1]"),
    (lambda: T.RandomResizedCrop(3, scale=(1, 0.5)), "scale must be two numbers"),
    (lambda: T.RandomRotation(-3), "degrees must not be negative"),
    (lambda: T.Pad((1, 2, 3)), "padding must be 1, 2 or 4 numbers"),
    (lambda: T.Pad(1, padding_mode="wrap"), "padding_mode must be"),
    (lambda: T.ColorJitter(brightness=-1), "brightness must not be negative"),
    (lambda: T.ColorJitter(hue=0.7), "hue must be a number, or two in order from -0.5 to 0.5"),
    (lambda: T.RandomChoice([T.ToTensor()], [0.0]), "not all 0"),
    (lambda: T.RandomErasing(value="noise"), "'random'"),
    (lambda: T.RandomCrop(40)(picture()), "pad_if_needed=True"),
    (lambda: T.Grayscale(2)(picture()), "num_output_channels must be 1 or 3"),
    (lambda: F.resize(fw.zeros(1, 4, 4), (2, 2), "lanczos"), "use a pillow image"),
])
def test_wrong_settings(make, text):
    with pytest.raises(ValueError) as caught:
        make()
    assert text in str(caught.value)


@pytest.mark.parametrize("make, text", [
    (lambda: T.Resize(3)(np.zeros((3, 4))), "wanted a pillow image or a Tensor, got ndarray"),
    (lambda: T.RandomErasing()(picture()), "ToTensor() before it"),
    (lambda: T.Compose(T.ToTensor()), "transforms must be a list"),
    (lambda: T.Compose([3]), "transforms[0] is a int, which cannot be called"),
    (lambda: T.ToTensor()(3), "wanted a pillow image"),
    (lambda: T.Lambda(3), "wanted a function"),
])
def test_wrong_types(make, text):
    with pytest.raises(TypeError) as caught:
        make()
    assert text in str(caught.value)
