"""The tokens of texts, put together from those of their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

_KEPT_WORDS = 16_384
_LONGEST = 40  # a longer run without a space is no word, and would fill memory


class Tokens:
    """The tokens of one text. Their offsets are made when they are asked for: few texts are cut.

    Args:
        ids: The tokens.
        offsets: Makes the start and end of each in the text.
    """

    def __init__(self, ids: list[int], offsets: Callable[[], Sequence[tuple[int, int]]]) -> None:
        self.ids = ids
        self._make_offsets = offsets

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, at: int) -> tuple[int, int]:
        return self._offsets[at]

    @cached_property
    def _offsets(self) -> Sequence[tuple[int, int]]:
        return self._make_offsets()


class WordTokeniser:
    """Tokenises texts, and words that it has met only once.

    The tokenisers of BERT read what stands between two spaces by itself, so the tokens of a text are those of its
    words. Others (byte pairs, sentence pieces) put the space into a token: to them a text is one word.

    Args:
        tokenizer: A tokenizer of the library tokenizers.

    Any number of threads may use it. It keeps single words, never a text.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._by_word = _reads_words(tokenizer)
        self._word = lru_cache(maxsize=_KEPT_WORDS)(self._ids)

    def tokens(self, text: str) -> Tokens:
        """The tokens of a text, without special tokens and without truncation."""
        if not self._by_word:
            encoding = self._encode(text)
            return Tokens(encoding.ids, lambda: encoding.offsets)
        ids: list[int] = []
        for word in text.split(" "):
            ids += self._word(word) if len(word) <= _LONGEST else self._ids(word)
        return Tokens(ids, lambda: self._encode(text).offsets)

    def _ids(self, word: str) -> list[int]:
        ids: list[int] = self._encode(word).ids
        return ids

    def _encode(self, text: str) -> Any:
        # One by one: encode_batch has threads of its own, for a handful of short texts, which do not survive a fork.
        return self._tokenizer.encode(text, add_special_tokens=False)


def _reads_words(tokenizer: Any) -> bool:
    """Whether no token can have a space in it, and no word looks at its neighbours."""
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    special = tokenizer.get_added_tokens_decoder().values()
    return (
        isinstance(tokenizer.normalizer, BertNormalizer)
        and isinstance(tokenizer.pre_tokenizer, BertPreTokenizer)
        and not any(token.lstrip or token.rstrip or token.single_word or " " in token.content for token in special)
    )
