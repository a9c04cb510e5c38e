"""The rules by which lips are taught, and what the labels are made from."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pipeline.packs.embedded.authoring.anatomy import UNITS
from pipeline.packs.embedded.authoring.visemes import (
    CLASSES,
    CLOSED,
    CLOSED_GAP,
    LABIODENTAL,
    TEMPLATES,
    lip_gap,
    nearest_viseme,
)
from pipeline.packs.embedded.training.corpus import take
from pipeline.packs.embedded.training.phones import UNSURE, arpabet_class, ipa_class, labels
from pipeline.packs.embedded.training.prosody import pitch
from pipeline.packs.embedded.training.sounds import interrupted, music, rumble, syllables
from pipeline.packs.embedded.training.targets import (
    closed_frames,
    frame_classes,
    frame_targets,
    viseme_shares,
)

AA, TD, UW = (CLASSES.index(name) for name in ("aa", "t d", "uw"))


def said(*phones: tuple[int, int]) -> np.ndarray:
    """(class, steps of 10 ms) -> labels."""
    return np.concatenate([np.full(steps, kind, np.int8) for kind, steps in phones])


def test_each_shape_is_nearest_to_itself_and_far_from_the_others() -> None:
    np.testing.assert_array_equal(nearest_viseme(TEMPLATES), np.arange(len(CLASSES)))
    distances = np.linalg.norm(TEMPLATES[:, None] - TEMPLATES, axis=2) + 9 * np.eye(len(CLASSES))
    assert distances.min() > 0.35


def test_of_all_sounds_only_p_b_m_close_the_lips() -> None:
    open_ = lip_gap(TEMPLATES) > CLOSED_GAP
    assert [name for name, is_open in zip(CLASSES, open_, strict=True) if not is_open] == ["silence", "p b m"]


def test_labiodentals_bring_the_lower_lip_to_the_teeth() -> None:
    shape = TEMPLATES[LABIODENTAL]
    assert shape[UNITS.index("mouthRollLower")] > 0.5
    assert lip_gap(shape[None])[0] < 0.1


@pytest.mark.parametrize("start", range(20, 28))
@pytest.mark.parametrize("steps", [2, 3, 5, 9])
def test_a_bilabial_always_closes_a_frame_that_it_fills_most(start: int, steps: int) -> None:
    _, closed = frame_targets(said((AA, start), (CLOSED, steps), (AA, 30)))
    frames = np.flatnonzero(closed)
    assert len(frames) >= 1
    assert start // 4 <= frames[0] <= frames[-1] <= (start + steps - 1) // 4
    assert len(frames) <= steps // 4 + 1


def test_frames_without_a_bilabial_stay_open() -> None:
    assert not closed_frames(np.zeros(12)).any()


def test_shares_of_all_visemes_sum_to_one() -> None:
    random = np.random.default_rng(1)
    shares = viseme_shares(np.repeat(random.integers(0, 13, 60), 7))
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-5)
    assert shares.min() >= 0


def test_rounding_is_seen_before_it_is_heard_and_more_so_than_after() -> None:
    shares = viseme_shares(said((TD, 20), (UW, 12), (TD, 20)))
    assert shares[12, UW] > 0.15  # 80 ms before
    assert shares[12, UW] > shares[39, UW] > 0.05  # 80 ms after
    unrounded = viseme_shares(said((TD, 20), (AA, 12), (TD, 20)))
    assert shares[12, UW] > 1.5 * unrounded[12, AA]


def test_a_tongue_sound_takes_the_shape_of_its_neighbours_and_stays_readable() -> None:
    labels_ = said((UW, 12), (TD, 8), (UW, 12))
    shares, _ = frame_targets(labels_)
    motion = shares @ TEMPLATES
    pucker = motion[:, UNITS.index("mouthPucker")]
    assert pucker[3] > 0.15
    assert nearest_viseme(motion)[3] == TD


def test_the_rules_motion_is_read_back_as_what_was_said() -> None:
    random = np.random.default_rng(7)
    said_ = said(*((int(random.integers(0, 13)), int(random.integers(5, 16))) for _ in range(300)))
    shares, closed = frame_targets(said_)
    motion = np.where(closed[:, None], TEMPLATES[CLOSED], shares @ TEMPLATES)
    assert (nearest_viseme(motion) == frame_classes(said_)).mean() > 0.85


def test_a_frame_belongs_to_what_fills_most_of_it() -> None:
    np.testing.assert_array_equal(frame_classes(said((AA, 3), (TD, 1), (UW, 2), (AA, 2))), [AA, UW])


@pytest.mark.parametrize(
    ("phone", "name"), [("p", "p b m"), ("AH0", "aa"), ("zh", "s z sh"), ("pau", "silence"), ("w", "uw"), ("er", "r l")]
)  # fmt: skip
def test_phones_of_flite_and_cmudict_have_their_class(phone: str, name: str) -> None:
    assert CLASSES[arpabet_class(phone)] == name


@pytest.mark.parametrize(
    ("phone", "name"), [("ˈaɪ", "aa"), ("tʃ", "s z sh"), ("pf", "f v"), ("ŋ", "k g"), ("_:", "silence")]
)  # fmt: skip
def test_phones_of_espeak_have_their_class(phone: str, name: str) -> None:
    kind = ipa_class(phone)
    assert kind is not None
    assert CLASSES[kind] == name


def test_a_noise_has_no_label_and_no_share() -> None:
    assert arpabet_class("+NSN+") == UNSURE
    shares = viseme_shares(said((AA, 20), (UNSURE, 10), (UW, 20)))
    assert not shares[20:30].any()
    np.testing.assert_allclose(np.delete(shares, np.s_[20:30], 0).sum(1), 1, atol=1e-5)


def test_a_length_mark_has_no_class() -> None:
    assert ipa_class("ː") is None


def test_labels_follow_the_starts() -> None:
    np.testing.assert_array_equal(labels([(0.0, 0), (0.02, 5), (0.05, 1)], 7), [0, 0, 5, 5, 5, 1, 1])


def test_pitch_is_relative_to_the_voice_and_zero_without_one() -> None:
    time = np.arange(16000) / 16000
    low = sum(np.cos(2 * np.pi * 120 * k * time) / k for k in range(1, 8))
    high = sum(np.cos(2 * np.pi * 150 * k * time) / k for k in range(1, 8))
    heights = pitch(np.concatenate([low, high, low, np.zeros(8000)]), 350)
    assert abs(np.median(heights[20:80])) < 0.03
    np.testing.assert_allclose(np.median(heights[120:180]), 12 * np.log2(150 / 120) / 9, atol=0.05)
    assert not heights[310:].any()


def test_made_sounds_are_as_long_as_their_labels_and_the_same_for_a_seed() -> None:
    sound, kinds = syllables(np.random.default_rng(1))
    assert len(sound) == 160 * len(kinds)
    np.testing.assert_array_equal(sound, syllables(np.random.default_rng(1))[0])
    assert CLOSED in kinds
    assert np.abs(music(np.random.default_rng(1))).max() <= 0.5


def test_words_by_themselves_are_single_and_far_apart() -> None:
    asked: list[str] = []

    def say(text: str) -> tuple[np.ndarray, list[tuple[float, int]]]:
        asked.append(text)
        return np.full(3200, 0.5, np.float32), [(0.0, 0), (0.05, AA), (0.15, 0)]

    made = take(say, ["one two three", "four five"], random.Random(2), lone=True)
    words = {"one", "two", "three", "four", "five"}
    assert all(text in words or len(text) == 1 for text in asked)
    assert any(text in words for text in asked)
    said = np.flatnonzero(made["labels"] == AA).reshape(-1, 10)
    assert len(said) == len(asked)
    assert (np.diff(said[:, 0]) >= 20 + 40).all()


def test_what_is_broken_off_stays_so_for_a_while() -> None:
    random = np.random.default_rng(5)
    for sound, shortest in ((music(random), 1.5), (rumble(random), 0.3)):
        loud = [
            np.abs(interrupted(sound, random, shortest)[: 12 * 16000].reshape(-1, 1600)).max(1) > 0 for _ in range(9)
        ]
        assert any(not each.all() for each in loud)
        edges = [np.flatnonzero(np.diff(np.concatenate([[0], each, [0]]))).reshape(-1, 2) for each in loud]
        whole = [end - begin for each in edges for begin, end in each if end < 120]
        assert min(whole) >= 10 * shortest
