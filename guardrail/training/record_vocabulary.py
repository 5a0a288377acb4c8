"""Words for invented local businesses, their attributes and their reviews."""

from __future__ import annotations

CITIES = tuple(
    (city.strip(), state)
    for state, cities in {
        "CA": "Santa Barbara, Goleta, Carpinteria, Montecito, Isla Vista",
        "PA": "Philadelphia, Lancaster, Media, West Chester",
        "FL": "Tampa, Clearwater, Brandon, Dunedin",
        "TN": "Nashville, Franklin, Brentwood, Hermitage",
        "LA": "New Orleans, Metairie, Kenner, Gretna",
        "AZ": "Tucson, Marana, Oro Valley",
        "NV": "Reno, Sparks, Carson City",
        "MO": "Saint Louis, Clayton, Kirkwood",
        "IN": "Indianapolis, Carmel, Fishers",
        "ID": "Boise, Meridian, Garden City",
    }.items()
    for city in cities.split(",")
)
STREETS = (
    "State St,Milpas St,Anacapa St,Hollister Ave,Calle Real,De La Vina St,Chapala St,Main St,Market St,Walnut St,"
    "Church St,Broadway,Magazine St,Canal St,Grant Ave,Coast Village Rd,Linden Ave,Fairview Ave,Oak Ln,Harbor Way,"
    "2nd Ave,N 5th St,Virginia St,Locust St,College Ave"
).split(",")
FIRST_NAMES = (
    "Marisol,Bennett,Lotus,Finney,Rosa,Harbor,Olive,Juniper,Sakura,Tandoor,Golden,Blue Heron,Pepe,Lucia,Copper,"
    "Old Mill,Saffron,Brisas,Padaro,Dockside,Uncle Ray,Willow,Sunny,Kim,Casa Blanca,Red Door,Nonna,Kestrel,Delancey"
).split(",")

DISHES = {
    "Mexican": "carnitas tacos,fish tacos,chile relleno,chicken enchiladas,guacamole,carne asada burrito,pozole",
    "Italian": "margherita pizza,lasagna,gnocchi,tiramisu,linguine with clams,chicken parmesan,bruschetta",
    "Japanese": "salmon nigiri,spicy tuna roll,tonkotsu ramen,gyoza,tempura,chirashi bowl,miso soup",
    "Indian": "chicken tikka masala,garlic naan,saag paneer,lamb vindaloo,samosas,vegetable biryani",
    "Thai": "pad thai,green curry,tom yum soup,papaya salad,drunken noodles,mango sticky rice",
    "Chinese": "kung pao chicken,pork dumplings,mapo tofu,hot and sour soup,orange chicken,chow mein",
    "American": "cheeseburger,fried chicken,mac and cheese,club sandwich,buffalo wings,pulled pork,sweet potato fries",
    "Seafood": "clam chowder,lobster roll,grilled swordfish,fish and chips,crab cakes,oysters,calamari",
    "Mediterranean": "falafel wrap,chicken shawarma,hummus,baba ganoush,lamb kebab,tabbouleh",
    "Breakfast & Brunch": "eggs benedict,blueberry pancakes,French toast,breakfast burrito,avocado toast,omelette",
    "Coffee & Tea": "latte,cold brew,almond croissant,blueberry scone,chai,breakfast sandwich",
    "Vietnamese": "beef pho,banh mi,spring rolls,vermicelli bowl,Vietnamese iced coffee",
}
PLURAL_DISHES = frozenset(
    "carnitas tacos,fish tacos,chicken enchiladas,samosas,drunken noodles,pork dumplings,buffalo wings,crab cakes,"
    "sweet potato fries,fish and chips,oysters,eggs benedict,blueberry pancakes,spring rolls,gyoza,gnocchi".split(",")
)
SIDE_CATEGORIES = (
    "Bars,Nightlife,Sandwiches,Salad,Vegan,Gluten-Free,Event Planning & Services,Caterers,Desserts,Wine Bars,"
    "Food Trucks,Bakeries,Cocktail Bars,Pizza,Burgers,Soup,Fast Food"
).split(",")
OTHER_TRADES = {
    "Nail Salons": "nail salon",
    "Auto Repair": "auto repair shop",
    "Bookstores": "bookstore",
    "Gyms": "gym",
    "Hair Salons": "hair salon",
    "Florists": "flower shop",
}

# attribute -> as it is read out, things that can be offered, sentences that affirm, sentences that deny
ATTRIBUTES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "RestaurantsReservations": (
        "restaurants reservations",
        ("reservations",),
        ("accepts reservations", "takes reservations", "allows customers to make reservations"),
        ("does not accept reservations", "does not take reservations"),
    ),
    "OutdoorSeating": (
        "outdoor seating",
        ("outdoor seating",),
        ("offers outdoor seating", "has outdoor seating available", "provides outdoor seating for its guests"),
        ("does not offer outdoor seating", "does not have outdoor seating", "has no outdoor seating"),
    ),
    "WiFi": (
        "wifi",
        ("free Wi-Fi", "free WiFi", "complimentary Wi-Fi"),
        ("offers free Wi-Fi", "provides free WiFi for customers", "has complimentary Wi-Fi"),
        ("does not offer Wi-Fi", "does not provide WiFi", "has no Wi-Fi"),
    ),
    "RestaurantsTakeOut": (
        "restaurants take out",
        ("takeout", "take-out", "takeout options"),
        ("offers takeout", "provides take-out service", "has takeout available"),
        ("does not offer takeout", "does not provide take-out"),
    ),
    "RestaurantsGoodForGroups": (
        "restaurants good for groups",
        (),
        ("is suitable for groups", "is good for groups", "is a good fit for groups", "is well suited to groups"),
        ("is not suitable for groups", "is not considered good for groups"),
    ),
    "RestaurantsDelivery": (
        "restaurants delivery",
        ("delivery",),
        ("offers delivery", "provides delivery service", "delivers"),
        ("does not offer delivery", "does not deliver"),
    ),
    "HasTV": ("has tv", ("TVs",), ("has a TV", "has TV on site"), ("does not have a TV", "has no TV")),
    "GoodForKids": (
        "good for kids",
        (),
        ("is good for kids", "is kid-friendly", "is suitable for children"),
        ("is not suitable for children", "is not kid-friendly"),
    ),
    "WheelchairAccessible": (
        "wheelchair accessible",
        ("wheelchair access",),
        ("is wheelchair accessible", "is accessible by wheelchair"),
        ("is not wheelchair accessible",),
    ),
    "BikeParking": (
        "bike parking",
        ("bike parking",),
        ("has bike parking", "offers bike parking"),
        ("does not have bike parking",),
    ),
    "DogsAllowed": (
        "dogs allowed",
        (),
        ("allows dogs", "is dog-friendly", "welcomes dogs"),
        ("does not allow dogs", "is not dog-friendly"),
    ),
    "Caters": (
        "caters",
        ("catering",),
        ("offers catering", "provides catering services"),
        ("does not offer catering",),
    ),
    "BusinessAcceptsCreditCards": (
        "business accepts credit cards",
        (),
        ("accepts credit cards", "takes credit cards"),
        ("does not accept credit cards",),
    ),
}
MISSING_NAMES = {
    "RestaurantsReservations": "reservations",
    "OutdoorSeating": "outdoor seating",
    "WiFi": "Wi-Fi availability",
    "RestaurantsTakeOut": "takeout",
    "RestaurantsGoodForGroups": "suitability for groups",
    "RestaurantsDelivery": "delivery",
    "HasTV": "a TV",
    "GoodForKids": "suitability for children",
    "WheelchairAccessible": "wheelchair accessibility",
    "BikeParking": "bike parking",
    "DogsAllowed": "dogs",
    "Caters": "catering",
    "BusinessAcceptsCreditCards": "credit cards",
}
PARKING = {
    "garage": ("a garage", "garage parking"),
    "street": ("street parking", "parking on the street"),
    "validated": ("validated parking",),
    "lot": ("a parking lot", "parking in a lot"),
    "valet": ("valet parking", "valet service"),
}
AMBIENCES = "romantic,intimate,classy,hipster,divey,touristy,trendy,upscale,casual".split(",")
MUSIC = {"dj": "a DJ", "live": "live music", "jukebox": "a jukebox", "karaoke": "karaoke", "video": "music videos"}
INVENTED = (
    "a rooftop terrace,a kids' play area,a private dining room,weekly trivia nights,a salad bar,a gift shop,"
    "a loyalty program,cooking classes,gluten-free menus,a heated patio,bottomless mimosas,electric car charging,"
    "a student discount,live jazz on Thursdays,pool tables,a photo booth"
).split(",")
INVENTED_IN_REVIEWS = (
    "the impressive wine list,the ocean view from the terrace,the homemade desserts,the live band,the cozy fireplace,"
    "the large vegan selection,the generous happy hour,the beautiful courtyard,the freshly baked bread,"
    "the loyalty card,the craft beer selection,the clean restrooms,the owner's birthday surprise"
).split(",")

# aspect -> how a summary names it when it is praised and when it is criticised
ASPECTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "food": (("the food", "the quality of the food"), ("the food", "the quality of the food")),
    "service": (("the service", "the quality of the service"), ("the service", "the poor service")),
    "price": (("the prices", "the good value for the money"), ("the prices", "the pricing")),
    "wait": (("the short wait", "the quick service times"), ("the long wait", "long wait times")),
    "ambience": (("the atmosphere", "the ambience"), ("the atmosphere", "the environment")),
}
# aspect -> praise?, what the review says, what a summary says of the reviewer, and the same with an error.
# {d} is a dish, {w} "was" or "were" with it; «…» is what is wrong.
POINTS: dict[str, tuple[tuple[bool, str, str, str], ...]] = {
    "food": (
        (True, "The {d} {w} absolutely delicious.", "the {d} {w} delicious", "the {d} {w} «bland»"),
        (True, "I had the {d} and loved every bite!", "they loved the {d}", "they «were disappointed by» the {d}"),
        (True, "Hands down the best {d} in town.", "the {d} {w} the best in town", "the {d} {w} «the worst in town»"),
        (True, "The {d} came out hot and full of flavor.", "the {d} {w} flavorful", "the {d} {w} «cold»"),
        (True, "Everything tasted fresh, especially the {d}.", "the food was fresh", "the food «was not fresh»"),
        (True, "My husband got the {d} and ate it all in two minutes.",
         "their husband had the {d}", "their «sister» had the {d}"),
        (False, "The {d} {w} cold by the time we got our plates.", "the {d} {w} cold", "the {d} {w} «hot and fresh»"),
        (False, "The {d} {w} bland and greasy.", "the {d} {w} greasy", "the {d} {w} «full of flavor»"),
        (False, "I ordered the {d} and had to send my plate back because it was undercooked.",
         "the {d} came undercooked and had to be sent back", "the {d} came «perfectly cooked»"),
        (False, "Honestly, the {d} tasted like something out of a microwave.",
         "the {d} tasted microwaved", "the {d} tasted «homemade»"),
        (False, "I found a hair in the {d}, which ruined my meal.",
         "there was a hair in the {d}", "there was «a bug» in the {d}"),
    ),
    "service": (
        (True, "Our server was super friendly and attentive.",
         "the server was friendly and attentive", "the server was «rude and inattentive»"),
        (True, "The staff went out of their way to help us.",
         "the staff went out of their way to help", "the staff «refused to help»"),
        (True, "The owner came over to greet us and even gave us a discount.",
         "the owner greeted them and gave them a discount", "the owner «overcharged them»"),
        (True, "They remembered my name from last time, which says it all.",
         "the staff remembered their name", "the staff «forgot their appointment»"),
        (False, "The girl at the counter was rude and rolled her eyes at us.",
         "the person at the counter was rude", "the person at the counter was «very kind»"),
        (False, "Nobody came to check on us the entire time.",
         "nobody checked on them", "«the staff checked on them often»"),
        (False, "They got my order wrong twice and did not even apologize.",
         "their order was wrong twice", "their order was wrong «five times»"),
        (False, "When I complained, the manager just shrugged and walked away.",
         "the manager walked away when they complained", "the manager «apologized and gave them a refund»"),
    ),
    "price": (
        (True, "Prices are very reasonable for what you get.",
         "the prices are reasonable", "the prices are «too high»"),
        (True, "You can get out of here for under $15, which is a steal.",
         "a visit costs less than $15", "a visit costs less than «$5»"),
        (False, "Way overpriced for the quality.", "it is overpriced", "it is «a bargain»"),
        (False, "We paid $60 for two and left unhappy.", "they paid $60 for two", "they paid «$90» for two"),
        (False, "Prices have gone up a lot, but the quality has not.",
         "the prices have gone up a lot", "the prices have «come down»"),
    ),
    "wait": (
        (True, "We were in and out in twenty minutes.", "they were done in twenty minutes",
         "they were done in «two hours»"),
        (True, "No wait at all, even on a Saturday.", "there was no wait on a Saturday",
         "there was «a long wait» on a Saturday"),
        (False, "We waited over an hour even though the place was half empty.",
         "they waited more than an hour", "they waited «only ten minutes»"),
        (False, "It took forty minutes before anyone paid attention to us.",
         "it took forty minutes to get attention", "it took «four minutes» to get attention"),
        (False, "The line was out the door and barely moved.", "there was a long line", "there was «no line»"),
    ),
    "ambience": (
        (True, "Such a cozy little spot with great decor.", "the place is cozy with great decor",
         "the place is «cold and bare»"),
        (True, "I love the relaxed vibe in there.", "the vibe is relaxed", "the vibe is «hectic»"),
        (True, "It was spotless, which I appreciate.", "the place was very clean", "the place was «dirty»"),
        (False, "It was so loud we could barely hear each other.", "it was very loud", "it was «pleasantly quiet»"),
        (False, "The floor was sticky and the bathroom was filthy.", "the bathroom was dirty",
         "the bathroom was «spotless»"),
        (False, "The place feels run down and could use a fresh coat of paint.", "the place feels run down",
         "the place feels «modern and elegant»"),
    ),
}  # fmt: skip
FILLERS = (
    "We stopped by on our way home from the beach.",
    "I had been meaning to try this place for months.",
    "My sister was in town for her birthday.",
    "A coworker recommended it to me.",
    "Came here on a Tuesday afternoon with my kids.",
    "I've lived in the area for ten years.",
    "So, where do I start?",
    "Found this place on Yelp.",
    "This was my third visit.",
    "We had a party of six.",
    "Parking was a bit of a puzzle.",
    "My girlfriend and I were celebrating our anniversary.",
    "I usually don't write reviews.",
    "It had been raining all day and we just needed somewhere to go.",
    "Full disclosure, I was in a hurry.",
)
CLOSERS = (
    (True, "Will definitely be back!", "they plan to return", "they «will not return»"),
    (True, "Highly recommend this place to anyone.", "they recommend the place", "they «advise against» the place"),
    (True, "This is my new favorite spot.", "it is their new favorite spot", "it is their «least favorite» spot"),
    (False, "I will not be coming back.", "they will not return", "they «plan to return»"),
    (False, "Save your money and go somewhere else.", "people should go elsewhere", "people should «visit»"),
    (False, "Never again.", "they would never go again", "they «would gladly go again»"),
)
