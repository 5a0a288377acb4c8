"""The known blind spots of checking by entailment, as one table of small cases.

Each case is one passage, one claim about it, and what a careful reader would say. ``tests/field/test_blind_spots.py``
pins what the shipped default makes of them today; ``python -m tests.benchmarks.blind_spots`` counts them by kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from guardrail import VerdictLabel, Verification, Verifier

SUPPORTED, CONTRADICTED, UNVERIFIABLE = VerdictLabel.SUPPORTED, VerdictLabel.CONTRADICTED, VerdictLabel.UNVERIFIABLE


class Kind(StrEnum):
    PARAPHRASE = "paraphrase"
    IMPLIED = "implied fact"
    NEGATION = "negation in other words"
    SHORT = "under five words"
    NUMBER = "shared number"
    ITALIAN = "Italian"
    CROSS = "Italian and English"
    OTHER = "German, French, Spanish"


class Case(NamedTuple):
    id: str
    kind: Kind
    premise: str
    claim: str
    right: VerdictLabel
    question: str | None = None

    def __str__(self) -> str:
        return self.id

    @property
    def grounded(self) -> bool:
        """Whether the claim should be accepted."""
        return self.right is SUPPORTED


# Kind, letter of its ids, passage, question, and per claim what is right.
_TABLE: tuple[tuple[Kind, str, str, str | None, tuple[tuple[str, VerdictLabel], ...]], ...] = (
    (
        Kind.PARAPHRASE, "P", "In the load test of May the platform served 10,000 concurrent users.", None,
        (
            ("In the load test the platform coped with thousands of users at the same time.", SUPPORTED),
            ("In the load test the platform coped with hundreds of thousands of users.", CONTRADICTED),
        ),
    ),
    (
        Kind.PARAPHRASE, "P", "Shipping is free for orders of at least 50 euros.", None,
        (
            ("You pay nothing for delivery if you spend 50 euros or more.", SUPPORTED),
            ("Delivery costs nothing only once you spend 100 euros.", CONTRADICTED),
        ),
    ),
    (
        Kind.PARAPHRASE, "P", "Ms Okafor was appointed managing director after Mr Lindqvist retired.", None,
        (
            ("Ms Okafor took over at the head of the company when Mr Lindqvist stepped down.", SUPPORTED),
            ("Mr Lindqvist took over from Ms Okafor as managing director.", CONTRADICTED),
        ),
    ),
    (
        Kind.PARAPHRASE, "P", "The pump stopped because sand had entered the bearing.", None,
        (
            ("Grit in the bearing brought the pump to a halt.", SUPPORTED),
            ("The pump came to a halt because its motor had burnt out.", CONTRADICTED),
        ),
    ),
    (
        Kind.PARAPHRASE, "P", "Three quarters of the members voted for the merger.", None,
        (
            ("75 percent of the members were in favour of joining forces.", SUPPORTED),
            ("Most of the members were against joining forces.", CONTRADICTED),
        ),
    ),
    (
        Kind.IMPLIED, "I", "The museum opens at ten in the morning and closes at six, every day.", None,
        (
            ("At noon the museum is open.", SUPPORTED),
            ("At nine in the evening the museum is open.", CONTRADICTED),
        ),
    ),
    (
        Kind.IMPLIED, "I", "Every member of the choir is older than sixty. Rosa sings in the choir.", None,
        (
            ("Rosa is older than sixty.", SUPPORTED),
            ("Rosa is a young woman in her twenties.", CONTRADICTED),
        ),
    ),
    (
        Kind.IMPLIED, "I", "The parcel left Oslo on Monday and reached Bergen three days later.", None,
        (
            ("The parcel reached Bergen on Thursday.", SUPPORTED),
            ("The parcel reached Bergen on Tuesday.", CONTRADICTED),
        ),
    ),
    (
        Kind.IMPLIED, "I", "The twins were born in 1990. Their brother Karl is five years younger.", None,
        (
            ("Karl was born in 1995.", SUPPORTED),
            ("Karl was born in 1985.", CONTRADICTED),
        ),
    ),
    (
        Kind.IMPLIED, "I", "The film was shot in Lisbon in eleven weeks.", None,
        (
            ("Filming took more than two months.", SUPPORTED),
            ("The director of the film lives in Lisbon.", UNVERIFIABLE),
        ),
    ),
    (
        Kind.NEGATION, "N", "The warranty excludes damage caused by water.", None,
        (
            ("Water damage is not covered by the warranty.", SUPPORTED),
            ("Water damage is covered by the warranty.", CONTRADICTED),
        ),
    ),
    (
        Kind.NEGATION, "N", "The shop no longer sells paper tickets.", None,
        (
            ("Paper tickets are a thing of the past at this shop.", SUPPORTED),
            ("Paper tickets can still be bought at the shop.", CONTRADICTED),
        ),
    ),
    (
        Kind.NEGATION, "N", "The committee refused to extend the deadline.", None,
        (
            ("The deadline was left as it was.", SUPPORTED),
            ("The committee granted an extension of the deadline.", CONTRADICTED),
        ),
    ),
    (
        Kind.NEGATION, "N", "Nobody but the treasurer may sign cheques.", None,
        (
            ("The secretary is not allowed to sign cheques.", SUPPORTED),
            ("The secretary may sign cheques.", CONTRADICTED),
        ),
    ),
    (
        Kind.NEGATION, "N", "The treatment failed to lower the number of infections.", None,
        (
            ("The treatment did not reduce infections.", SUPPORTED),
            ("The treatment reduced infections.", CONTRADICTED),
        ),
    ),
    (
        Kind.NEGATION, "N", "The bridge was far from finished when the mayor opened it.", None,
        (
            ("The bridge was not complete when the mayor opened it.", SUPPORTED),
            ("The bridge was complete when the mayor opened it.", CONTRADICTED),
        ),
    ),
    (
        Kind.SHORT, "S", "The pass costs 12 euros a month and is valid on all buses.", "What does the pass cost?",
        (
            ("It costs 12 euros.", SUPPORTED),
            ("It costs 21 euros.", CONTRADICTED),
        ),
    ),
    (
        Kind.SHORT, "S", "The pool is heated to 28 degrees all year.", "Is the pool heated?",
        (
            ("Yes, 28 degrees.", SUPPORTED),
            ("Yes, 31 degrees.", CONTRADICTED),
        ),
    ),
    (
        Kind.SHORT, "S", "The keynote speaker is Amara Diallo.", "Who gives the keynote?",
        (
            ("Amara Diallo.", SUPPORTED),
            ("Lena Hofer.", CONTRADICTED),
        ),
    ),
    (
        Kind.SHORT, "S", "The trail is closed in winter.", None,
        (
            ("Closed in winter.", SUPPORTED),
            ("Open in winter.", CONTRADICTED),
            ("Dogs are welcome.", UNVERIFIABLE),
        ),
    ),
    (
        Kind.SHORT, "S", "Children under six travel free of charge.", None,
        (
            ("Toddlers ride free.", SUPPORTED),
            ("Toddlers pay half.", CONTRADICTED),
        ),
    ),
    (
        Kind.NUMBER, "U", "The Basic plan costs 100 a month.", None,
        (
            ("The Basic plan costs 100 every month.", SUPPORTED),
            ("The Basic plan costs 50 a month.", CONTRADICTED),
            ("The Basic plan has 100 GB of storage.", UNVERIFIABLE),
        ),
    ),
    (
        Kind.NUMBER, "U", "The ticket costs 30 euros.", None,
        (
            ("You pay 30 euros for the ticket.", SUPPORTED),
            ("The ticket is valid for 30 days.", UNVERIFIABLE),
        ),
    ),
    (
        Kind.NUMBER, "U", "Room 12 is on the left and room 14 is on the right.", None,
        (
            ("Room 14 is on the right.", SUPPORTED),
            ("The room on the left has 12 seats.", UNVERIFIABLE),
            ("Room 14 is on the left.", CONTRADICTED),
        ),
    ),
    (
        Kind.ITALIAN, "T", "La biblioteca è aperta dal lunedì al venerdì, dalle nove alle diciotto.", None,
        (
            ("La biblioteca è aperta dal lunedì al venerdì.", SUPPORTED),
            ("La biblioteca è aperta anche la domenica.", CONTRADICTED),
        ),
    ),
    (
        Kind.ITALIAN, "T", "Il dottor Ferri ha operato il paziente nel marzo del 2019.", None,
        (
            ("Il paziente è stato operato dal dottor Ferri nel marzo del 2019.", SUPPORTED),
            ("Il paziente è stato operato dal dottor Ferri nel giugno del 2019.", CONTRADICTED),
        ),
    ),
    (
        Kind.ITALIAN, "T", "Il rimborso non è previsto per i biglietti scontati.", None,
        (
            ("I biglietti scontati non vengono rimborsati.", SUPPORTED),
            ("I biglietti scontati vengono rimborsati.", CONTRADICTED),
        ),
    ),
    (
        Kind.ITALIAN, "T", "L'azienda ha assunto duecento persone nello stabilimento di Bari.", None,
        (
            ("Nello stabilimento di Bari l'azienda ha assunto 200 persone.", SUPPORTED),
            ("Nello stabilimento di Bari l'azienda ha licenziato duecento persone.", CONTRADICTED),
            ("L'azienda ha la sua sede legale a Torino.", UNVERIFIABLE),
        ),
    ),
    (
        Kind.ITALIAN, "T", "Chi ha meno di sei anni entra gratis al museo.", None,
        (
            ("Per un bambino di cinque anni l'ingresso al museo non costa nulla.", SUPPORTED),
            ("Per un bambino di cinque anni l'ingresso al museo costa due euro.", CONTRADICTED),
        ),
    ),
    (
        Kind.ITALIAN, "T", "Il bar vende birra e vino.", None,
        (
            ("Il bar vende vino.", SUPPORTED),
            ("Il bar non vende vino.", CONTRADICTED),
        ),
    ),
    (
        Kind.CROSS, "X", "The library is open from Monday to Friday and opens at nine in the morning.", None,
        (
            ("La biblioteca apre alle nove del mattino.", SUPPORTED),
            ("La biblioteca apre alle undici del mattino.", CONTRADICTED),
        ),
    ),
    (
        Kind.CROSS, "X", "Il traghetto parte alle sette dal molo numero tre.", None,
        (
            ("The ferry leaves from pier number three at seven.", SUPPORTED),
            ("The ferry leaves from pier number three at nine.", CONTRADICTED),
        ),
    ),
    (
        Kind.OTHER, "O", "Die Praxis nimmt seit Januar keine neuen Patienten mehr auf.", None,
        (
            ("Neue Patienten werden von der Praxis nicht mehr aufgenommen.", SUPPORTED),
            ("Die Praxis nimmt seit Januar wieder neue Patienten auf.", CONTRADICTED),
        ),
    ),
    (
        Kind.OTHER, "O", "Le train de nuit part de Paris à vingt-deux heures et arrive à Nice le matin.", None,
        (
            ("Le train de nuit arrive à Nice le matin.", SUPPORTED),
            ("Le train de nuit arrive à Nice le soir.", CONTRADICTED),
        ),
    ),
    (
        Kind.OTHER, "O", "El curso dura seis semanas y es gratuito para los socios.", None,
        (
            ("Los socios no pagan nada por el curso.", SUPPORTED),
            ("Los socios pagan el curso como todos los demás.", CONTRADICTED),
        ),
    ),
)  # fmt: skip


def _cases() -> Iterator[Case]:
    numbers: dict[str, int] = {}
    for kind, letter, premise, question, claims in _TABLE:
        for claim, right in claims:
            numbers[letter] = number = numbers.get(letter, 0) + 1
            yield Case(f"{letter}{number:02}", kind, premise, claim, right, question)


CASES = tuple(_cases())


class Result(StrEnum):
    RIGHT = "right"
    RELEASED = "released"  # although the passage does not support it
    STOPPED = "stopped"  # although the passage supports it
    LANGUAGE = "refused for its language"  # what strict mode does instead of guessing


def verified(case: Case, verifier: Verifier) -> Verification:
    """What a verifier says about a case."""
    return verifier.verify_sync(case.claim, [case.premise], question=case.question)


def result(case: Case, found: Verification) -> Result:
    """Whether that is what the policy should have decided."""
    if found.reason == "unsupported_language":
        return Result.LANGUAGE
    if found.accepted == case.grounded:
        return Result.RIGHT
    return Result.RELEASED if found.accepted else Result.STOPPED
