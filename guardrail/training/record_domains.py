"""Invented records of other kinds (hotels, products, people, …) and sentences about them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from guardrail.training.record_claims import Claim, article, listed


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: its path, its possible values, and verb phrases that say it.

    For a truth value there are two phrases, the second of them for *no*; for a list ``{}`` is the enumeration.
    """

    path: str
    values: tuple[Any, ...]
    phrases: tuple[str, ...]
    many: bool = False


@dataclass(frozen=True, slots=True)
class Domain:
    """A kind of record: the noun for it, the names, the fields."""

    noun: str
    names: tuple[str, ...]
    fields: tuple[Field, ...]


def _field(path: str, values: Any, *phrases: str) -> Field:
    many = isinstance(values, str)
    return Field(path, tuple(values.split(",")) if many else tuple(values), phrases, many)


_YES_NO = (True, False)

_DOMAINS = (
    Domain(
        "hotel",
        ("Sea View Hotel", "Hotel Aurora", "Linden House", "Grand Meridian", "Casa Azul", "Alpenblick Lodge"),
        (
            _field("location.city", ("Lisbon", "Trieste", "Leeds", "Denver", "Kyoto", "Graz"), "is located in {}"),
            _field("rooms", range(18, 420), "has {} rooms", "offers a total of {} rooms"),
            _field("check_in", ("14:00", "15:00", "16:00"), "has check-in from {}", "allows check-in from {}"),
            _field("check_out", ("10:00", "11:00", "12:00"), "requires check-out by {}", "has check-out at {}"),
            _field("price_per_night_eur", range(59, 420), "costs {} EUR per night", "charges €{} per night"),
            _field("pets_allowed", _YES_NO, "allows pets", "does not allow pets"),
            _field("breakfast_included", _YES_NO, "includes breakfast", "does not include breakfast"),
            _field("amenities", "pool,gym,sauna,spa,bar,business center,laundry", "offers {}", "provides {}"),
            _field(
                "airport_distance_km", range(2, 60), "is {} km from the airport", "lies {} km away from the airport"
            ),
        ),
    ),
    Domain(
        "product",
        ("Trailmate 40", "Nimbus X2", "AeroBrew Pro", "Lumen S1", "VoltEdge Drill", "Kettle One"),
        (
            _field("specs.weight_g", range(180, 4000, 5), "weighs {} g", "has a weight of {} grams"),
            _field(
                "specs.battery_hours", range(4, 60), "has a battery life of {} hours", "runs for {} hours on battery"
            ),
            _field("specs.color", ("black", "red", "silver", "navy", "white"), "comes in {}", "is available in {}"),
            _field("specs.waterproof", _YES_NO, "is waterproof", "is not waterproof"),
            _field("price_usd", (19.99, 49.5, 89.0, 129.99, 249.0, 399.95), "costs ${}", "is priced at ${}"),
            _field(
                "warranty_months", (6, 12, 24, 36, 60), "comes with a {}-month warranty", "has a warranty of {} months"
            ),
            _field("in_stock", _YES_NO, "is in stock", "is out of stock"),
            _field("rating", (3.1, 3.8, 4.2, 4.6, 4.9), "has an average rating of {}", "is rated {} out of 5"),
            _field(
                "included", "charger,carry case,USB cable,manual,spare filter,strap", "ships with {}", "includes {}"
            ),
        ),
    ),
    Domain(
        "apartment",
        ("Maple Court 4B", "Harbor Loft", "Unit 12C", "Birch Street Flat", "Skyline Studio"),
        (
            _field("size_sqm", range(24, 160), "has a size of {} square meters", "measures {} sqm"),
            _field("bedrooms", range(1, 6), "has a bedroom count of {}", "lists {} for its bedrooms"),
            _field("rent.monthly_usd", range(650, 4200, 25), "rents for ${} per month", "costs ${} a month"),
            _field("rent.deposit_usd", range(500, 6000, 50), "requires a deposit of ${}"),
            _field("floor", range(1, 15), "is on floor {}", "is located on floor {}"),
            _field("furnished", _YES_NO, "is furnished", "is not furnished"),
            _field("elevator", _YES_NO, "has an elevator", "does not have an elevator"),
            _field(
                "features", "balcony,dishwasher,garden,fireplace,storage room,parking space", "features {}", "has {}"
            ),
            _field("energy_class", tuple("ABCDEF"), "has energy class {}", "is in energy class {}"),
        ),
    ),
    Domain(
        "employee",
        ("Maria Keller", "Tom Okafor", "Yuki Tanabe", "Elena Rossi", "David Lindqvist", "Priya Nair"),
        (
            _field("department", ("Finance", "Logistics", "Design", "Legal", "Sales"), "works in {}", "is part of {}"),
            _field(
                "title", ("Analyst", "Team Lead", "Engineer", "Coordinator"), "holds the title of {}", "works as {an}"
            ),
            _field("start_year", range(2003, 2025), "joined in {}", "has been with the company since {}"),
            _field("contract.weekly_hours", (20, 24, 30, 35, 38, 40), "works {} hours per week"),
            _field("contract.remote", _YES_NO, "works remotely", "does not work remotely"),
            _field("vacation_days_left", range(1, 31), "has {} vacation days left", "still has {} days of vacation"),
            _field("languages", "English,German,French,Spanish,Polish,Hindi", "speaks {}"),
            _field("office", ("Berlin", "Austin", "Madrid", "Oslo"), "is based in {}", "works at the {} office"),
        ),
    ),
    Domain(
        "medicine",
        ("Veltrana", "Ibroxil", "Nadorin", "Calmeva", "Pulmosan"),
        (
            _field("form", ("tablet", "capsule", "syrup", "ointment"), "comes as {an}", "is sold as {an}"),
            _field("dose.strength_mg", (5, 10, 25, 50, 200, 400, 500), "contains {} mg", "has a strength of {} mg"),
            _field(
                "dose.max_per_day", range(1, 9), "has a maximum of {} doses per day", "is limited to {} doses a day"
            ),
            _field("prescription_required", _YES_NO, "requires a prescription", "does not require a prescription"),
            _field(
                "side_effects", "nausea,headache,dizziness,dry mouth,rash,fatigue", "can cause {}", "may lead to {}"
            ),
            _field(
                "storage.max_temp_c", (8, 20, 25, 30), "must be stored below {} °C", "must be kept below {} degrees"
            ),
            _field("min_age_years", (2, 6, 12, 16, 18), "has a minimum age of {} years"),
            _field("safe_in_pregnancy", _YES_NO, "is safe in pregnancy", "is not safe in pregnancy"),
        ),
    ),
    Domain(
        "event",
        ("Riverside Jazz Night", "DataForum", "Spring Book Fair", "Open Kitchen Day", "City Half Marathon"),
        (
            _field(
                "venue", ("Town Hall", "Pier 7", "Central Park", "Expo Hall B"), "takes place at {}", "is held at {}"
            ),
            _field("start_time", ("09:00", "10:30", "18:00", "19:30", "20:00"), "starts at {}", "begins at {}"),
            _field(
                "date.month", ("March", "May", "June", "September", "October"), "takes place in {}", "is held in {}"
            ),
            _field("capacity", range(80, 5000, 10), "has a capacity of {}", "can host {} people"),
            _field("tickets.price_eur", range(5, 150), "costs {} EUR to attend", "has tickets for {} EUR"),
            _field("tickets.refundable", _YES_NO, "offers refundable tickets", "does not offer refundable tickets"),
            _field(
                "sponsors", "Norda Bank,Helix,Radio Four,Bluebird,Aster", "is sponsored by {}", "lists sponsors: {}"
            ),
            _field("wheelchair_access", _YES_NO, "has wheelchair access", "does not have wheelchair access"),
        ),
    ),
    Domain(
        "flight",
        ("NX 204", "QL 88", "AV 1310", "TR 67", "BZ 455"),
        (
            _field("departure.airport", ("Vienna", "Porto", "Dublin", "Oslo"), "departs from {}", "leaves from {}"),
            _field("departure.time", ("06:10", "09:45", "13:20", "17:55", "21:30"), "departs at {}", "leaves at {}"),
            _field("arrival.airport", ("Rome", "Athens", "Cairo", "Boston"), "arrives in {}", "flies to {}"),
            _field("duration_min", range(55, 620, 5), "takes {} minutes", "has a duration of {} minutes"),
            _field("stops", range(0, 3), "has a number of stops of {}", "lists {} under stops"),
            _field("baggage.checked_kg", (15, 20, 23, 30, 32), "allows {} kg of checked baggage"),
            _field("wifi", _YES_NO, "offers Wi-Fi on board", "does not offer Wi-Fi on board"),
            _field("aircraft", ("A320", "B737", "E190", "A350"), "is operated with an aircraft of type {}"),
        ),
    ),
    Domain(
        "plan",
        ("Starter", "Team", "Business Plus", "Scale", "Solo"),
        (
            _field("price.monthly_usd", (0, 9, 19, 29, 49, 99, 199), "costs ${} per month", "is priced at ${} a month"),
            _field("limits.users", (1, 3, 5, 10, 25, 50), "allows up to {} users", "is limited to {} users"),
            _field(
                "limits.storage_gb", (2, 10, 50, 100, 500, 1000), "includes {} GB of storage", "offers {} GB of storage"
            ),
            _field("trial_days", (7, 14, 30, 60), "has a {}-day trial", "offers a trial of {} days"),
            _field("sso", _YES_NO, "includes single sign-on", "does not include single sign-on"),
            _field(
                "support.channels", "email,chat,phone,forum,Slack", "offers support by {}", "provides support via {}"
            ),
            _field("support.response_hours", (1, 4, 8, 24, 48), "has a support response time of {} hours"),
            _field("audit_log", _YES_NO, "includes an audit log", "does not include an audit log"),
            _field("region", ("EU", "US", "Canada", "Japan"), "stores data in {}", "keeps its data in {}"),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An invented record of some domain."""

    domain: Domain
    record: dict[str, Any]
    values: dict[str, Any]


def invent_entry(rng: random.Random) -> Entry:
    """Invent a record: four or more fields of a domain, some of them null."""
    domain = rng.choice(_DOMAINS)
    fields = rng.sample(domain.fields, rng.randint(4, len(domain.fields)))
    values: dict[str, Any] = {}
    record: dict[str, Any] = {"name": rng.choice(domain.names)}
    for spec in sorted(fields, key=domain.fields.index):
        value: Any = rng.sample(spec.values, rng.randint(2, 4)) if spec.many else rng.choice(spec.values)
        value = None if rng.random() < 0.12 else value
        values[spec.path] = value
        *outer, last = spec.path.split(".")
        place = record
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = value
    return Entry(domain=domain, record=record if rng.random() < 0.7 else {domain.noun: record}, values=values)


def entry_claim(entry: Entry, rng: random.Random, bad: bool) -> Claim:
    """A sentence part about one field of a record.

    Args:
        entry: The record.
        rng: Source of chance.
        bad: Whether it must be wrong.

    Returns:
        The claim, with marks around what is wrong.
    """
    spec = rng.choice([f for f in entry.domain.fields if f.path in entry.values])
    value = entry.values[spec.path]
    said = spec.path.split(".")[-1].replace("_", " ")
    need = f"{said} {_read(value)}".lower()
    if spec.values == _YES_NO:
        says_yes = rng.random() < 0.5 if value is None else bool(value) is not bad
        phrase = spec.phrases[0 if says_yes else 1]
        if not bad and value is None:
            text = rng.choice(["There is no information on whether it {}", "It is not specified whether it {}"])
            return Claim(text=text.format(spec.phrases[0]), needs=(need,), whole=True)
        wrong = "" if not bad else "contradiction" if value is not None else "neutral"
        return Claim(text=f"«{phrase}»" if bad else phrase, needs=(need,), wrong=wrong)
    if value is None and not bad:
        return _not_given(said, need, rng)
    phrase = rng.choice(spec.phrases)
    if spec.many:
        items = rng.sample(value, rng.randint(1, len(value))) if value else []
        needs = tuple(str(i).lower() for i in items) if items else (need,)
        if bad:
            other = rng.choice([v for v in spec.values if v not in (value or ())])
            items.insert(rng.randint(0, len(items)), f"«{other}»")
        return Claim(text=phrase.format(listed(items)), needs=(said, *needs), wrong="neutral" if bad else "")
    if bad:
        value = rng.choice([v for v in spec.values if v != value])
    shown = f"{value:,}" if isinstance(value, int) and value >= 1000 and spec.path != "start_year" else str(value)
    shown = f"{value:.2f}" if isinstance(value, float) and "usd" in spec.path else shown
    shown = f"«{shown}»" if bad else shown
    wrong = "" if not bad else "neutral" if entry.values[spec.path] is None else "contradiction"
    return Claim(text=phrase.format(shown, an=article(shown)), needs=(need,), wrong=wrong)


def _read(value: Any) -> str:
    if value is None:
        return "not given"
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"


def _not_given(said: str, need: str, rng: random.Random) -> Claim:
    text = rng.choice(["The {} is not specified", "No value is given for the {}", "There is no information on the {}"])
    return Claim(text=text.format(said), needs=(need,), whole=True)
