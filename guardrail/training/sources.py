"""What the embedded model was trained on: files, how many pairs of each, and their licences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of training data.

    Attributes:
        name: Name of the file, without its ending.
        pairs: Most pairs to take of it.
        licence: Licence of the data, as its publishers state it.

    Example:
        >>> sum(source.pairs for source in PAIR_SOURCES)
        71084
    """

    name: str
    pairs: int
    licence: str


_DIALOGUES = "CC BY 4.0 (WoW, CMU-DoG), CDLA-Sharing (TopicalChat)"
_WIKIPEDIA = "CC BY-SA (Wikipedia)"
_MIXED = "CC BY-SA (DROP, XQuAD, Wikipedia), CC BY 4.0 (CosmosQA), Common Crawl terms of use (WiCE)"

PAIR_SOURCES: tuple[Source, ...] = (
    Source(name="mnli_dev_matched", pairs=9800, licence="OANC (MultiNLI)"),
    Source(name="snli_dev", pairs=5000, licence="CC BY-SA 4.0"),
    Source(name="cad_nli", pairs=4000, licence="Apache-2.0; SNLI text CC BY-SA 4.0"),
    Source(name="conjnli_adv_train", pairs=4000, licence="MIT"),
    Source(name="scone", pairs=2500, licence="CC0 1.0"),
    Source(name="scitail_dev", pairs=1300, licence="Apache-2.0"),
    Source(name="folio", pairs=600, licence="CC BY-SA 4.0"),
    Source(name="mnli_taxinli_train", pairs=2200, licence="C-UDA; MultiNLI text OANC"),
    Source(name="help_monotonicity", pairs=2000, licence="CC BY-SA 4.0"),
    Source(name="fever_symmetric_dev", pairs=705, licence="MIT; text CC BY-SA 3.0 (Wikipedia)"),
    Source(name="qamr_statements", pairs=2500, licence="MIT"),
    Source(name="synthetic_wikisent", pairs=6000, licence=f"{_WIKIPEDIA}; ConjNLI MIT"),
    Source(name="fm2_dev", pairs=2338, licence="Apache-2.0; text CC BY-SA 3.0 (Wikipedia)"),
    Source(name="synthetic_longctx", pairs=17000, licence=_MIXED),
    Source(name="drop_nli", pairs=3000, licence="CC BY-SA 4.0"),
    Source(name="wice_partial_train", pairs=374, licence=f"ODC-BY; {_WIKIPEDIA}, Common Crawl terms of use"),
    Source(name="scifact_train_binary", pairs=562, licence="CC BY 4.0 (claims), ODC-By 1.0 (abstracts)"),
    Source(name="xquad_en_statements", pairs=1318, licence="CC BY-SA 4.0"),
    Source(name="begin_dev", pairs=1136, licence=_DIALOGUES),
    Source(name="gap_coreference", pairs=1200, licence="Apache-2.0"),
    Source(name="halueval_qa_sample", pairs=1400, licence="MIT; HotpotQA text CC BY-SA 4.0"),
    Source(name="pubmedqa_train", pairs=151, licence="MIT"),
    Source(name="entailmentbank_curriculum", pairs=1000, licence="Apache-2.0"),
    Source(name="snli_train_sample", pairs=1000, licence="CC BY-SA 4.0"),
)
"""Pairs of premise and hypothesis; the order decides the order of sampling."""

ANSWER_SOURCES: tuple[Source, ...] = (
    Source(name="ragtruth_qa_train_4models", pairs=100_000, licence="MIT (RAGTruth)"),
    Source(name="ragtruth_extra_train_summary_qa", pairs=100_000, licence="MIT (RAGTruth)"),
)
"""Labelled answers with marked spans, all of them except those that are held out."""

WRITTEN_SOURCES: tuple[Source, ...] = (
    Source(name="written_records", pairs=100_000, licence="as this project"),
    Source(name="written_articles", pairs=100_000, licence="as this project"),
    Source(name="written_documents", pairs=100_000, licence="as this project"),
)
"""Answers with marked errors that were written to train this model, with the records and texts that they are about."""

WRITTEN = Path(__file__).parents[2] / "training_data"
"""Their folder in a checkout of the repository; it is not in the package."""

PROSE_SOURCES = ("fm2_dev", "synthetic_longctx", "xquad_en_statements", "wice_partial_train")
"""Files whose premises are documents that statements are made from, besides the contexts of the answers."""

REVIEW_SOURCE = ("synthetic_longctx", "syn_cosmoblog_")
"""File and beginning of ``source`` of first-person texts, of which some reviews in invented records are made."""
