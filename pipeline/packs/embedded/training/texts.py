"""What the synthesisers say: made-up sentences of real words, `python -m ...training.texts FILE`.

Words come from the wheels faker (MIT: words, names, towns and trades of many countries) and pocketsphinx (BSD:
the English CMUdict). Sentences without sense serve: phones and their neighbours matter, not the meaning.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from faker import Faker
from faker.config import AVAILABLE_LOCALES
from pocketsphinx import get_model_path

from .espeak import ENGLISH

SEED = 1

LANGUAGES = {
    "de_DE": "de", "es_ES": "es", "fr_FR": "fr", "it_IT": "it", "pt_PT": "pt", "pt_BR": "pt-br", "pl_PL": "pl",
    "nl_NL": "nl", "sv_SE": "sv", "fi_FI": "fi", "cs_CZ": "cs", "hu_HU": "hu", "tr_TR": "tr", "hi_IN": "hi",
    "id_ID": "id", "vi_VN": "vi", "zh_CN": "cmn", "el_GR": "el", "ar_AA": "ar", "ro_RO": "ro", "da_DK": "da",
    "no_NO": "nb", "bg_BG": "bg", "ko_KR": "ko", "ta_IN": "ta", "fa_IR": "fa", "he_IL": "he", "ka_GE": "ka",
    "lt_LT": "lt", "lv_LV": "lv", "sk_SK": "sk", "hr_HR": "hr", "uk_UA": "uk", "et_EE": "et", "sl_SI": "sl",
    "hy_AM": "hy", "bn_BD": "bn", "ne_NP": "ne", "az_AZ": "az", "sq_AL": "sq", "ru_RU": "ru",
}  # fmt: skip
"""Faker's locale -> espeak-ng's voice."""

FUNCTION_WORDS = (
    "the a of and to in is you that it he was for on are with as his they be at one have this from or had by but "
    "what we when your can there an each which she do how their if will up other about out many then them these "
    "so some her would like him into has more no could my than been who its now did may over only very after our "
    "just where through much before too any same another must even such because here why again off should we'll "
    "they're I've doesn't "
)
"""English is half made of them, softly spoken, with most of its th."""

SENTENCES = 900
"""Of each language; five times as many of English."""


def _words(fake: Faker) -> list[str]:
    words: list[str] = []
    for kind in ("word", "first_name", "last_name", "city", "job"):
        for _ in range(400):
            try:
                words.append(getattr(fake, kind)())
            except (AttributeError, IndexError, TypeError, ValueError):  # the locale has none of the kind
                break
    return words


def _english() -> list[str]:
    lines = Path(get_model_path("en-us/cmudict-en-us.dict")).read_text("utf-8").splitlines()
    return [line.split()[0] for line in lines if re.match(r"[a-z]{2,10} ", line)]


def _sentences(words: list[str], count: int, chance: random.Random) -> list[str]:
    def sentence() -> str:
        said = [chance.choice(words) for _ in range(chance.randint(3, 9))]
        if chance.random() < 0.06:
            said[chance.randrange(len(said))] = str(chance.randint(2, 999))
        for i in range(len(said) - 1):
            said[i] += "," if chance.random() < 0.1 else ""
        return " ".join(said) + chance.choice("...!?")

    return [sentence() for _ in range(count)]


def sentences() -> dict[str, list[str]]:
    """espeak-ng's voice -> sentences."""
    chance = random.Random(SEED)
    plain = Faker("en_US")
    plain.seed_instance(SEED)
    common = _words(plain)
    rare = _english()
    english = [
        word
        for _ in range(len(rare) // 4)
        for word in (chance.choice(common), chance.choice(rare), *chance.choices(FUNCTION_WORDS.split(), k=2))
    ]
    result = {ENGLISH: _sentences(english, 5 * SENTENCES, chance)}
    for locale, voice in LANGUAGES.items():
        if locale in AVAILABLE_LOCALES:
            fake = Faker(locale)
            fake.seed_instance(SEED)
            result[voice] = _sentences(_words(fake), SENTENCES, chance)
    return result


def main() -> None:
    """Write the sentences as JSON."""
    Path(sys.argv[1]).write_text(json.dumps(sentences(), ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
