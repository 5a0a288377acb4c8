"""Claims against structured records: what is exactly wrong, and what must pass."""

from __future__ import annotations

import json
import time

import pytest

from guardrail.scoring.record_clashes import RecordIndex, record_clashes
from guardrail.scoring.record_facts import record_facts

BISTRO = json.dumps(
    {
        "name": "Corner Bistro",
        "city": "Leeds",
        "categories": "Italian, Bars",
        "hours": {
            "Monday": "0:0-0:0",
            "Tuesday": "11:0-21:0",
            "Wednesday": "11:0-21:0",
            "Thursday": "11:0-21:0",
            "Friday": "11:0-22:30",
            "Saturday": "12:0-0:0",
        },
        "attributes": {
            "BusinessParking": {"garage": False, "street": True, "validated": None, "lot": False, "valet": False},
            "OutdoorSeating": False,
            "WiFi": "no",
            "RestaurantsTakeOut": True,
            "RestaurantsDelivery": None,
            "RestaurantsReservations": True,
            "RestaurantsGoodForGroups": True,
            "GoodForKids": False,
            "HasTV": None,
            "WheelchairAccessible": True,
            "DogsAllowed": False,
            "BikeParking": True,
            "Alcohol": "beer_and_wine",
            "Caters": False,
            "Ambience": {"casual": True, "romantic": False, "touristy": None},
            "Music": None,
            "GoodForMeal": {"dinner": False, "lunch": True},
        },
        "business_stars": 4.0,
        "review_count": 120,
        "review_info": [
            {"review_stars": 5.0, "review_text": "Great patio. We loved it. They have WiFi."},
            {"review_stars": 2.0, "review_text": "Slow service. Bad pasta."},
        ],
    }
)
HOTEL = (
    "{'hotel_name': 'Harbour View', 'rating': 8.7, 'facilities': {'swimming_pool': False, 'free_wifi': True,"
    " 'airport_shuttle': None, 'gym': True, 'pets': {'allowed': False}, 'parking': {'available': True}},"
    " 'room': {'air_conditioning': True, 'balcony': False, 'hair_dryer': 'n/a'}, 'breakfast_included': 'no',"
    " 'non_smoking': True, 'front_desk_hours': '0:00-24:00', 'credit_cards_accepted': True}"
)
PHONE = "\n".join(
    (
        "Model: Nova 5", "Waterproof: no", "Wireless charging: yes", "NFC: not specified", "Headphone jack: no",
        "Dual SIM: yes", "Expandable storage: none", "Fingerprint sensor: available", "Colour: black",
    )
)  # fmt: skip
PATIENT = json.dumps(
    {
        "patient": {"smoker": False, "pregnant": None, "diabetes": True, "hypertension": False},
        "history": {"asthma": "no", "pacemaker": "yes", "drug_allergies": "none", "family_history": None},
        "visits_count": 3,
    }
)
STAFF = json.dumps(
    [
        {"name": "Anna Beck", "companyCar": True, "isManager": False, "securityClearance": None},
        {"name": "Tom Reed", "companyCar": False, "isManager": True, "securityClearance": True},
    ]
)
LIBRARY = json.dumps(
    {
        "title": "Elm Library",
        "openingHours": {"Mon-Fri": "9am-5pm", "Saturday": "10:00-13:00, 14:00-16:00", "Sunday": "closed"},
        "services": {"meetingRooms": True, "printing": False, "studySpaces": True, "cafe": False},
        "averageRating": 4.6,
    }
)
RECORDS = {
    "bistro": BISTRO, "hotel": HOTEL, "phone": PHONE, "patient": PATIENT, "staff": STAFF, "library": LIBRARY
}  # fmt: skip

# Claims that the record objects to: a part of what it says, "" where it says nothing, and whether it says otherwise.
WRONG = [
    ("bistro", "They offer outdoor seating.", "outdoor seating", True),
    ("bistro", "Corner Bistro has outdoor dining and takeout.", "outdoor seating", True),
    ("bistro", "It offers free Wi-Fi.", "wifi", True),
    ("bistro", "Free wireless internet is available.", "wifi", True),
    ("bistro", "The restaurant has a garage.", "garage", True),
    ("bistro", "There is a parking garage.", "garage", True),
    ("bistro", "It offers street and valet parking.", "valet", True),
    ("bistro", "Guests can park on site, as it has a parking lot.", "lot", True),
    ("bistro", "It does not offer parking.", "parking", True),
    ("bistro", "There is no street parking.", "street", True),
    ("bistro", "No take-out is available.", "take out", True),
    ("bistro", "The bistro does not offer takeout or street parking.", "take out", True),
    ("bistro", "They do not accept reservations.", "reservation", True),
    ("bistro", "Reservations are not accepted.", "reservation", True),
    ("bistro", "It is family-friendly.", "kid", True),
    ("bistro", "The restaurant is good for kids and groups.", "kid", True),
    ("bistro", "It is suitable for children.", "kid", True),
    ("bistro", "It is not good for groups.", "group", True),
    ("bistro", "The restaurant is dog-friendly.", "dog", True),
    ("bistro", "Dogs are allowed.", "dog", True),
    ("bistro", "It is not wheelchair accessible.", "wheelchair", True),
    ("bistro", "The place lacks bike parking.", "bike parking", True),
    ("bistro", "It has a full bar.", "alcohol", True),
    ("bistro", "The restaurant does not serve alcohol.", "alcohol", True),
    ("bistro", "They cater.", "cater", True),
    ("bistro", "It has a romantic ambience.", "romantic", True),
    ("bistro", "The atmosphere is romantic.", "romantic", True),
    ("bistro", "It is good for dinner.", "dinner", True),
    ("bistro", "It offers takeout and delivery.", "delivery", False),
    ("bistro", "It offers takeout, but no delivery.", "delivery", False),
    ("bistro", "They deliver.", "delivery", False),
    ("bistro", "The restaurant has a TV.", "tv", False),
    ("bistro", "It offers live music.", "music", False),
    ("bistro", "It offers validated parking.", "validated", False),
    ("bistro", "It has a touristy vibe.", "touristy", False),
    ("bistro", "Amenities include takeout, free WiFi and street parking.", "wifi", True),
    ("bistro", "Outdoor seating: yes", "outdoor seating", True),
    ("bistro", "Neither takeout nor delivery is available.", "take out", True),
    ("bistro", "It is open from 11 AM to 9 PM on Fridays.", "Friday", True),
    ("bistro", "Open Tuesday through Friday from 11 AM to 9 PM.", "Friday", True),
    ("bistro", "They are open until 10 pm on Wednesdays.", "Wednesday", True),
    ("bistro", "It opens at 8.", "11:0", True),
    ("bistro", "It is closed on Tuesdays.", "Tuesday", True),
    ("bistro", "On Saturdays it is open from noon to 11 PM.", "Saturday", True),
    ("bistro", "It is open 24 hours.", "Tuesday", True),
    ("bistro", "It is open on Sundays from 11 AM to 9 PM.", "", False),
    ("bistro", "It is open seven days a week.", "", False),
    ("bistro", "Rated 4.5 stars, it is popular.", "4.0", True),
    ("bistro", "It holds an overall rating of 3.5 out of 5.", "4.0", True),
    ("bistro", "The bistro has a 3-star rating.", "4.0", True),
    ("bistro", "It has a rating of over 4.5 stars.", "4.0", True),
    ("bistro", "It is rated 4.5/5.", "4.0", True),
    ("bistro", "It has 150 reviews.", "120", True),
    ("bistro", "Reviews range from 1 to 5 stars.", "2.0 to 5.0", True),
    ("bistro", "The data does not specify anything about outdoor seating.", "outdoor seating", True),
    ("bistro", "There is no information about street parking.", "street", True),
    ("bistro", "According to the data, it does not offer takeout.", "take out", True),
    ("bistro", "It is worth noting that the bistro, which is in Leeds, lacks bike parking.", "bike parking", True),
    ("bistro", "It offers parking and delivery, and is open from 11 AM to 8 PM on Tuesdays.", "Tuesday", True),
    ("bistro", "On weekdays from 8 AM to 9 PM and from noon to midnight on Saturdays, it is open.", "Tuesday", True),
    ("bistro", "Amenities: outdoor seating, takeout.", "outdoor seating", True),
    ("hotel", "The hotel has a swimming pool.", "pool", True),
    ("hotel", "Harbour View features an indoor pool and a gym.", "pool", False),
    ("hotel", "There is no gym.", "gym", True),
    ("hotel", "It does not provide free WiFi.", "wifi", True),
    ("hotel", "Pets are welcome.", "pet", True),
    ("hotel", "The hotel is pet-friendly.", "pet", True),
    ("hotel", "An airport shuttle is provided.", "shuttle", False),
    ("hotel", "There is no airport shuttle.", "shuttle", False),
    ("hotel", "Rooms come with air conditioning and a balcony.", "balcony", True),
    ("hotel", "Rooms have a hair dryer.", "hair dryer", False),
    ("hotel", "Breakfast is included.", "breakfast", True),
    ("hotel", "Credit cards are not accepted.", "credit card", True),
    ("hotel", "The hotel has no parking.", "parking", True),
    ("phone", "The Nova 5 is waterproof.", "waterproof", True),
    ("phone", "It supports dual SIM and wireless charging and has a headphone jack.", "jack", True),
    ("phone", "The phone does not support wireless charging.", "wireless charging", True),
    ("phone", "It has NFC.", "nfc", False),
    ("phone", "NFC is not supported.", "nfc", False),
    ("phone", "It offers expandable storage.", "storage", True),
    ("phone", "The phone lacks a fingerprint sensor.", "fingerprint", True),
    ("patient", "The patient is a smoker.", "smoker", True),
    ("patient", "The patient is pregnant.", "pregnant", False),
    ("patient", "The patient has hypertension.", "hypertension", True),
    ("patient", "The patient does not have diabetes.", "diabetes", True),
    ("patient", "She has asthma and a pacemaker.", "asthma", True),
    ("patient", "He has no pacemaker.", "pacemaker", True),
    ("patient", "The patient has drug allergies.", "drug allergies", True),
    ("staff", "Tom Reed has a company car.", "company car", True),
    ("staff", "Anna Beck is a manager.", "manager", True),
    ("staff", "Anna Beck has security clearance.", "clearance", False),
    ("staff", "Tom Reed does not have security clearance.", "clearance", True),
    ("library", "Elm Library is open on weekdays from 9 AM to 6 PM.", "5pm", True),
    ("library", "It is open on Sundays.", "Sunday", True),
    ("library", "The library is open daily.", "Sunday", True),
    ("library", "On Saturday it opens at 9.", "Saturday", True),
    ("library", "It offers printing and meeting rooms.", "printing", True),
    ("library", "It has no study spaces.", "study space", True),
    ("library", "There is a cafe.", "cafe", True),
    ("library", "It is rated 4.2 out of 5.", "4.6", True),
]

RIGHT = [
    ("bistro", "They offer takeout and street parking, but no outdoor seating."),
    ("bistro", "It offers takeout, but outdoor seating is not available."),
    ("bistro", "The restaurant does not have outdoor seating or WiFi."),
    ("bistro", "There is no garage, lot, or valet parking, but street parking is available."),
    ("bistro", "It has no garage but street parking."),
    ("bistro", "Parking is available on the street."),
    ("bistro", "It offers parking."),
    ("bistro", "It has a lot of parking options on the street."),
    ("bistro", "It is located on a quiet street near a garage."),
    ("bistro", "It serves street food and a lot of pasta."),
    ("bistro", "It is not specified whether the restaurant offers delivery."),
    ("bistro", "There is no information about delivery or a TV."),
    ("bistro", "It offers takeout, but delivery is not mentioned."),
    ("bistro", "One customer said that the patio has WiFi."),
    ("bistro", "Customers praised the outdoor seating."),
    ("bistro", "According to one reviewer, they have free WiFi."),
    ("bistro", "They have outdoor seating, one customer said."),
    ("bistro", "It may offer delivery."),
    ("bistro", "If you want outdoor seating, call ahead."),
    ("bistro", "Does it offer outdoor seating?"),
    ("bistro", "Unlike other places, which have outdoor seating, it only offers takeout."),
    ("bistro", "The delivery fee is unclear."),
    ("bistro", "They offer discounts on delivery orders."),
    ("bistro", "It serves hot dogs and pizza."),
    ("bistro", "Its kids menu is popular."),
    ("bistro", "It is a family-owned restaurant."),
    ("bistro", "Reservations are not required."),
    ("bistro", "It accepts reservations and is good for groups."),
    ("bistro", "It is not suitable for children."),
    ("bistro", "Dogs are not allowed."),
    ("bistro", "The restaurant serves beer and wine."),
    ("bistro", "It does not have a full bar."),
    ("bistro", "It has bike parking and is wheelchair accessible."),
    ("bistro", "The bistro has a casual ambience."),
    ("bistro", "The dinner is good."),
    ("bistro", "It offers dinner and lunch."),
    ("bistro", "They do not offer catering."),
    ("bistro", "Outdoor seating: no"),
    ("bistro", "The staff is not good with reservations."),
    ("bistro", "It is open from 11 AM to 9 PM, Tuesday to Thursday, and until 10:30 PM on Friday."),
    ("bistro", "Open Tuesday to Thursday from 11am-9pm and Friday from 11 am to 10:30 pm."),
    ("bistro", "On Saturdays it is open from noon to midnight."),
    ("bistro", "It is closed on Sundays."),
    ("bistro", "It is open on Mondays from 8 AM to 4 PM."),
    ("bistro", "It opens at 11."),
    ("bistro", "Happy hour runs from 4 to 6 PM on weekdays, when the bar is open."),
    ("bistro", "The kitchen closes at 8 PM on Fridays."),
    ("bistro", "Hours vary, and it is open until 10 PM on some days."),
    ("bistro", "A reviewer who came on Friday found that it closed at 9 PM."),
    ("bistro", "It is open from Tuesday to Saturday."),
    ("bistro", "It has a 4-star rating."),
    ("bistro", "The overall rating is 4 out of 5 stars."),
    ("bistro", "One customer gave it 2 stars."),
    ("bistro", "Reviews range from 2 to 5 stars."),
    ("bistro", "It is rated about 4.5 stars."),
    ("bistro", "It is rated above 3.5 stars."),
    ("bistro", "It has 120 reviews."),
    ("bistro", "It has over 100 reviews."),
    ("bistro", "Two reviews praise the pasta."),
    ("bistro", "Reviews range from 2 to 5 stars, and it has a 4-star rating."),
    ("bistro", "No information is provided regarding delivery."),
    ("bistro", "The data does not mention whether it offers delivery or a TV."),
    ("bistro", "According to the data, it offers takeout and is casual."),
    ("bistro", "Friday: 11:00 AM - 10:30 PM"),
    ("bistro", "You can come without a reservation."),
    ("bistro", "They cater to students and families."),
    ("bistro", "Take your dog for a walk, and allow dogs to rest."),
    ("bistro", "Bake it for 6 to 8 hours, then let it rest in the open."),
    ("bistro", "The chef (born in 1970) is a movie, television and stage actor."),
    ("bistro", "Clean it with water and vinegar, and store it in a dry place like a shed or garage."),
    ("hotel", "You can bring toys for them to play with in the pool."),
    ("hotel", "The hotel has no swimming pool."),
    ("hotel", "Harbour View offers free WiFi, a gym and parking."),
    ("hotel", "There is a pool table and a pool bar."),
    ("hotel", "Pets are not allowed."),
    ("hotel", "It has no heated pool."),
    ("hotel", "Breakfast is not included."),
    ("hotel", "It has a breakfast room."),
    ("hotel", "The rooms have air conditioning but no balcony."),
    ("hotel", "An airport shuttle is not mentioned."),
    ("hotel", "Credit cards are accepted, and the hotel is non-smoking."),
    ("hotel", "There is no free parking."),
    ("hotel", "Guests rate it 4 out of 5."),
    ("phone", "The Nova 5 is not waterproof."),
    ("phone", "It has a waterproof case."),
    ("phone", "The phone supports wireless charging and dual SIM."),
    ("phone", "It lacks a headphone jack."),
    ("phone", "Whether the phone has NFC is not specified."),
    ("phone", "It has no expandable storage."),
    ("phone", "Its fingerprint sensor is fast."),
    ("phone", "The black model has a fingerprint sensor."),
    ("patient", "The patient is not a smoker."),
    ("patient", "The patient has diabetes and a pacemaker but no asthma."),
    ("patient", "The patient does not have hypertension."),
    ("patient", "Pregnancy status is not recorded."),
    ("patient", "The patient has no drug allergies."),
    ("patient", "The father was a smoker."),
    ("patient", "His brother is a smoker."),
    ("patient", "The patient may have asthma."),
    ("staff", "Anna Beck has a company car."),
    ("staff", "Tom Reed is a manager with security clearance."),
    ("staff", "Tom Reed does not have a company car."),
    ("staff", "She has no company car."),
    ("staff", "Anna Beck reports to Tom Reed, who is a manager."),
    ("staff", "There is no information about the security clearance of Anna Beck."),
    ("library", "Elm Library is open on weekdays from 9 AM to 5 PM."),
    ("library", "It is open Monday to Friday from 9 to 5 and closed on Sundays."),
    ("library", "On Saturday it is open from 10 AM to 1 PM and from 2 PM to 4 PM."),
    ("library", "It is open every day except Sunday."),
    ("library", "It offers meeting rooms and study spaces, but no printing."),
    ("library", "There is no cafe."),
    ("library", "It is rated 4.6 out of 5."),
    ("library", "It has an average rating of over 4.5 stars."),
    ("bistro", "It is good for groups, but does not cater, allow dogs or offer WiFi."),
    ("bistro", "It takes reservations and has neither outdoor seating nor a lot."),
    ("bistro", "There is bike parking, but neither WiFi nor outdoor seating."),
    ("bistro", "No lot, garage or valet is available."),
    ("bistro", "There is no garage or lot, only the street."),
    ("bistro", "Reservations are taken, but it does not allow dogs or offer WiFi."),
    ("bistro", "It is not a place with WiFi."),
    ("bistro", "Outdoor seating isn't provided, nor is WiFi."),
    ("bistro", "Services: takeout yes, outdoor seating no"),
    ("bistro", "It opens at 11 AM from Tuesday to Friday and closes at 9 PM, or 10:30 PM on Friday."),
    ("bistro", "It closes at 9 PM on the first three days and at 10:30 PM on Friday."),
    ("bistro", "It opens at 11 AM on weekdays, closing at 9 PM except on Friday, when it closes at 10:30 PM."),
    ("bistro", "It is open from Tuesday to Friday from 11 AM to 9 PM, and until 10:30 PM on Friday."),
    ("bistro", "It opens at 11 AM during the week and at noon on Saturday."),
    ("bistro", "It opens at noon on Saturday and at 11 AM from Tuesday to Friday, closing between 9 PM and midnight."),
    ("bistro", "It is open every day but Sunday and Monday."),
    ("bistro", "It is closed on Sunday, and on Friday it stays open until 10:30 PM."),
]


@pytest.mark.parametrize(("record", "claim", "evidence", "contradicts"), WRONG)
def test_objections(record: str, claim: str, evidence: str, contradicts: bool) -> None:
    found = record_clashes(claim, record_facts(RECORDS[record]))
    assert len(found) in (1, 2)
    assert any(
        evidence.casefold() in clash.evidence_text.casefold() and clash.contradicts is contradicts for clash in found
    )
    assert bool(evidence) == any(clash.evidence_text for clash in found)


@pytest.mark.parametrize(("record", "claim"), RIGHT)
def test_true_claims_pass(record: str, claim: str) -> None:
    assert record_clashes(claim, record_facts(RECORDS[record])) == ()


def test_a_claim_is_compared_with_the_record_that_it_names() -> None:
    facts = [
        *record_facts('{"name": "Elm Inn", "pool": false}', source="a"),
        *record_facts('{"name": "Elm Inn Annex", "pool": true, "gym": false}', source="b"),
    ]
    index = RecordIndex(facts)
    assert [source for source, _ in index.clashes("The Elm Inn has a pool.")] == ["a"]
    assert index.clashes("The Elm Inn Annex has a pool.") == ()
    assert [source for source, _ in index.clashes("The Elm Inn Annex has a gym.")] == ["b"]
    assert index.clashes("It has a pool.") == ()
    assert index.clashes("The Elm Inn has a pool, and the Oak Inn has one too.")[0][0] == "a"


def test_a_key_that_stands_for_two_things_decides_nothing() -> None:
    facts = record_facts('{"lobby": {"wifi": true}, "rooms": {"wifi": false}}')
    assert record_clashes("It has wifi.", facts) == ()
    assert [c.evidence_text for c in record_clashes("It has wifi in the rooms.", facts)] == ["rooms wifi: no"]


def test_comparison_is_fast() -> None:
    record = json.dumps({"name": "Elm Inn", "features": {f"feature{'abcdefghij'[i % 10]}_{i}": True for i in range(90)},
                         "attributes": {"pool": False, "outdoor_seating": False, "wifi": None}})  # fmt: skip
    index = RecordIndex(record_facts(record))
    claims = [
        f"The Elm Inn number {i} offers a pool, free WiFi and street parking, and opens at 8." for i in range(200)
    ]
    best = min(_seconds(index, claims[start : start + 40]) for start in range(0, 200, 40))
    assert best / 40 < 0.001


def _seconds(index: RecordIndex, claims: list[str]) -> float:
    start = time.process_time()
    for claim in claims:
        assert index.clashes(claim)
    return time.process_time() - start
