"""The persons of the portrait set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import styles as s
from .heads import Shape
from .person import Glasses, Light, Person

WHITE, AFRICAN, ASIAN = {"caucasian": 1.0}, {"african": 1.0}, {"asian": 1.0}
MIXED = {"caucasian": 0.5, "african": 0.5}
INDIAN = {"caucasian": 0.6, "asian": 0.25, "african": 0.15}
BROAD_SMILE = {"mouthSmile": 0.75, "jawOpen": 0.12, "mouthUpperUp": 0.6, "mouthLowerDown": 0.3, "cheekSquint": 0.3}
SMILE = {"mouthSmile": 0.5, "cheekSquint": 0.3, "eyeSquint": 0.15}
LAUGH = {
    "mouthSmile": 0.8,
    "jawOpen": 0.32,
    "mouthUpperUp": 0.55,
    "mouthLowerDown": 0.3,
    "cheekSquint": 0.4,
    "eyeSquint": 0.1,
}
SPEAKING = {"jawOpen": 0.22, "mouthUpperUp": 0.15, "mouthLowerDown": 0.2}
ROOM, WARM, LIGHT, GREEN, NIGHT, BLUE = (
    ((0.46, 0.47, 0.48), (0.22, 0.23, 0.25)),
    ((0.52, 0.40, 0.28), (0.22, 0.14, 0.09)),
    ((0.82, 0.82, 0.80), (0.62, 0.62, 0.61)),
    ((0.42, 0.50, 0.32), (0.16, 0.24, 0.13)),
    ((0.10, 0.07, 0.06), (0.03, 0.025, 0.03)),
    ((0.50, 0.60, 0.70), (0.28, 0.35, 0.42)),
)


def shape(
    seed: int,
    ethnicity: Mapping[str, float],
    age: float,
    male: float,
    units: Mapping[str, float] | None = None,
    weight: float = 0.0,
    strength: float = 0.45,
) -> Shape:
    """`age`: 0 baby, 1 child, 2 young, 3 old, and between."""
    names = ["baby", "child", "young", "old"]
    low = min(int(age), 2)
    part = age - low
    ages = {names[low]: 1 - part, names[low + 1]: part}
    return Shape(ethnicity, ages, male, weight, s.own(seed, strength), units or {})


# fmt: off
PEOPLE = [
    Person("anna", "young woman, fair, long brown hair, mouth closed", shape(1, WHITE, 2.0, 0.0), s.FAIR, [s.LONG,
           s.BROWS], s.CHESTNUT, s.GREEN, background=ROOM, exposure=1.55),
    Person("kofi", "man, dark skin, cropped hair, broad smile with teeth", shape(2, AFRICAN, 2.1, 1.0, BROAD_SMILE),
           s.DARK, [s.BUZZ, s.BROWS], s.BLACK, s.DARK_EYES, exposure=1.75, stubble=0.4, background=LIGHT,
           cloth=(0.5, 0.5, 0.48), yaw=-8),
    Person("mei", "young woman, black bob, round glasses, slight smile", shape(3, ASIAN, 2.0, 0.0, {"mouthSmile":
           0.4, "eyeWide": 0.5}), s.GOLD, [s.BOB, s.BROWS], s.BLACK, s.DARK_EYES, glasses=Glasses(roundness=0.95),
           exposure=1.45, background=BLUE, cloth=(0.25, 0.05, 0.06), yaw=10),
    Person("piet", "old man, bald with a wreath of white hair, glasses, window light", shape(4, WHITE, 2.9, 1.0),
           s.OLD, [s.WREATH, s.BROWS], s.WHITE, s.BLUE, 0.8, s.WINDOW, exposure=1.55, background=WARM,
           glasses=Glasses((0.30, 0.27, 0.2), 0.8, 0.012, True), cloth=(0.12, 0.1, 0.07), yaw=14),
    Person("lina", "girl of about seven, blond, laughing with an open mouth", shape(5, WHITE, 1.25, 0.1, LAUGH,
           strength=0.25), s.CHILD, [s.FRINGE, s.BROWS], s.BLOND, s.BLUE, lights=s.OVERCAST, exposure=1.35,
           background=GREEN, cloth=(0.45, 0.12, 0.15), extra={"brows": 0.7}, yaw=-6),
    Person("omar", "man, olive skin, full dark beard, side light", shape(6, WHITE, 2.3, 1.0), s.OLIVE, [s.PART,
           s.FULL_BEARD, s.MOUSTACHE, s.BROWS], s.BRUNET, s.BROWN_EYES, lights=s.SIDE, exposure=1.55,
           background=ROOM, cloth=(0.03, 0.03, 0.035), extra={"brows": 1.35}),
    Person("zola", "woman, dark skin, afro, three-quarter view of 30 degrees", shape(7, AFRICAN, 2.0, 0.0), s.BROWN,
           [s.AFRO, s.BROWS], s.BLACK, s.DARK_EYES, exposure=1.65, yaw=30, background=WARM, cloth=(0.5, 0.28, 0.05),
           face=0.36),
    Person("igor", "man of fifty, dim warm light, mouth speaking", shape(8, WHITE, 2.5, 1.0, SPEAKING, 0.3),
           s.RUDDY, [s.RECEDING, s.BROWS], s.BRUNET, s.HAZEL, 0.35, s.EVENING, ambient=(0.03, 0.03, 0.04),
           exposure=0.80, background=NIGHT, grain=4.0, stubble=0.6, yaw=-12),
    Person("amara", "woman of fifty, dark skin, greying hair swept back, laughing", shape(9, AFRICAN, 2.5, 0.0, LAUGH),
           s.DARK, [s.TIED, s.BROWS], s.BLACK, s.DARK_EYES, 0.15, s.WINDOW, exposure=1.9, background=GREEN, yaw=-16,
           cloth=(0.3, 0.03, 0.12), face=0.46),
    Person("jun", "boy of ten, black fringe, mouth a little open", shape(10, ASIAN, 1.4, 0.9, {"jawOpen": 0.12},
           strength=0.3), s.GOLD, [s.FRINGE, s.BROWS], s.BLACK, s.DARK_EYES, lights=s.SUN, exposure=1.3,
           background=GREEN, cloth=(0.1, 0.3, 0.35), extra={"brows": 0.8}, yaw=8, roll=5),
    Person("greta", "old woman, white bob, glasses, smile", shape(11, WHITE, 3.0, 0.0, SMILE), s.OLD, [s.BOB,
           s.BROWS], s.WHITE, s.BLUE, 0.7, s.OVERCAST, exposure=1.4, background=LIGHT, glasses=Glasses((0.2, 0.03,
           0.03), 0.7), cloth=(0.2, 0.2, 0.32), yaw=-10),
    Person("sven", "man, pale, red full beard, freckles", shape(12, WHITE, 2.2, 1.0), replace(s.PALE, freckles=0.8),
           [s.BACK, s.FULL_BEARD, s.MOUSTACHE, s.BROWS], s.RED, s.BLUE, lights=s.OVERCAST, exposure=1.3,
           background=BLUE, cloth=(0.08, 0.12, 0.08), yaw=18),
    Person("priya", "woman, brown skin, long black hair, smile with teeth", shape(13, INDIAN, 2.05, 0.0,
           BROAD_SMILE), s.TAN, [s.LONG, s.BROWS], s.BLACK, s.DARK_EYES, exposure=1.5, background=WARM, cloth=(0.5,
           0.1, 0.02), face=0.5),
    Person("marco", "man, olive skin, glasses, moustache and chin beard, flash", shape(14, WHITE, 2.4, 1.0,
           weight=0.6), s.OLIVE, [s.RECEDING, s.GOATEE, s.BROWS], s.BRUNET, s.BROWN_EYES, 0.1, s.FLASH,
           exposure=0.9, background=NIGHT, glasses=Glasses(thickness=0.026, roundness=0.6), cloth=(0.3, 0.3, 0.3),
           face=0.56, lens=45),
    Person("tunde", "boy of six, dark skin, cropped hair, smile", shape(15, AFRICAN, 1.15, 0.9, SMILE,
           strength=0.25), s.BROWN, [s.BUZZ, s.BROWS], s.BLACK, s.DARK_EYES, lights=s.OVERCAST, exposure=1.9,
           background=WARM, cloth=(0.5, 0.35, 0.05), extra={"brows": 0.7}, yaw=-20),
    Person("elin", "young woman, pale, freckles, red curls, three-quarter view of 28 degrees", shape(16, WHITE,
           1.95, 0.0), replace(s.PALE, freckles=1.0), [s.CURLS, s.BROWS], s.RED, s.GREEN, lights=s.WINDOW,
           exposure=1.3, yaw=-28, background=GREEN, cloth=(0.02, 0.14, 0.12)),
    Person("hana", "woman, low light from a screen, mouth open", shape(17, ASIAN, 2.2, 0.0, {"jawOpen": 0.3}),
           s.GOLD, [s.LONG, s.BROWS], s.BRUNET, s.DARK_EYES, lights=(Light(10, -20, 180, (0.6, 0.75, 1.0), 4),
           Light(150, 30, 90, (1, 0.6, 0.4))), ambient=(0.015, 0.015, 0.02), exposure=1.5, grain=5.0,
           background=NIGHT, pupil=0.28),
    Person("boris", "old man, full white beard, wreath, side light", shape(18, WHITE, 2.85, 1.0, weight=0.3),
           s.RUDDY, [s.WREATH, s.FULL_BEARD, s.MOUSTACHE, s.BROWS], s.WHITE, s.HAZEL, 0.9, s.SIDE, exposure=1.4,
           background=ROOM, yaw=-22, cloth=(0.12, 0.02, 0.02), extra={"brows": 1.5}),
    Person("noor", "woman, olive skin, small in the picture", shape(19, INDIAN, 2.1, 0.0, SMILE), s.OLIVE, [s.TIED,
           s.BROWS], s.BLACK, s.BROWN_EYES, lights=s.SUN, exposure=1.3, background=BLUE, face=0.23, size=(640, 480),
           shift=(0.12, 0.02), cloth=(0.02, 0.2, 0.15)),
    Person("dele", "man, dark skin, full black beard, glasses, large in the picture", shape(20, AFRICAN, 2.3, 1.0),
           s.BROWN, [s.CROP, s.FULL_BEARD, s.MOUSTACHE, s.BROWS], s.BLACK, s.DARK_EYES, 0.1, exposure=1.7,
           background=ROOM, face=0.52, glasses=Glasses((0.25, 0.2, 0.12), 0.85, 0.013, True), lens=50, size=(480,
           640), cloth=(0.35, 0.4, 0.5)),
    Person("ida", "girl of three, blond, eyes to the side", shape(21, WHITE, 0.75, 0.0, {"jawOpen": 0.06},
           strength=0.2), s.CHILD, [s.FRINGE, s.BROWS], s.BLOND, s.BLUE, exposure=1.4, background=LIGHT, gaze=(0.0,
           14.0), cloth=(0.5, 0.2, 0.25), extra={"brows": 0.5}, pupil=0.26),
    Person("ravi", "man, brown skin, moustache, head tilted", shape(22, INDIAN, 2.4, 1.0, SPEAKING), s.BROWN,
           [s.PART, s.MOUSTACHE, s.BROWS], s.BLACK, s.DARK_EYES, 0.1, s.SUN, exposure=1.6, background=GREEN,
           roll=-12, yaw=6, cloth=(0.4, 0.4, 0.36), extra={"brows": 1.2}),
    Person("lucia", "woman of forty, blond bob, one eyebrow up, warm evening light", shape(23, WHITE, 2.35, 0.0,
           {"browOuterUpLeft": 0.8, "browInnerUp": 0.3, "mouthSmileLeft": 0.5}), s.FAIR, [s.BOB, s.BROWS], s.BLOND,
           s.GREEN, lights=(Light(50, 12, 900, (1.0, 0.75, 0.5), 5), Light(-70, 10, 200, (0.6, 0.7, 1.0), 12)),
           exposure=1.2, background=WARM, yaw=12, cloth=(0.25, 0.22, 0.2)),
    Person("chen", "old man, thin, receding grey hair, eyes half closed", shape(24, ASIAN, 2.9, 1.0, {"eyeBlink":
           0.35}, weight=-0.6), replace(s.GOLD, wrinkles=0.5, sockets=0.5), [s.RECEDING, s.BROWS], s.GRAY,
           s.DARK_EYES, 0.6, exposure=1.4, background=ROOM, yaw=-5, pitch=-4.0, cloth=(0.1, 0.12, 0.14)),
    Person("maya", "woman, mixed descent, curls, backlight, laughing", shape(25, MIXED, 2.0, 0.0, LAUGH), s.TAN,
           [s.CURLS, s.BROWS], s.BRUNET, s.BROWN_EYES, lights=(Light(150, 35, 1800, (1.0, 0.9, 0.7), 4), Light(-20,
           5, 380, size=14)), exposure=1.5, background=GREEN, yaw=9, cloth=(0.45, 0.42, 0.38)),
    Person("tom", "man, bald, stubble, frown, hard light from above", shape(26, WHITE, 2.3, 1.0, {"browDown": 0.7,
           "mouthFrown": 0.4, "mouthPress": 0.3}, 0.4), s.FAIR, [s.BROWS], s.BRUNET, s.BLUE, lights=(Light(0, 70,
           1300, size=2), Light(30, -10, 120, size=14)), exposure=1.3, background=NIGHT, stubble=0.9, cloth=(0.02,
           0.02, 0.02)),
]
# fmt: on
