"""General phrases that language models add on their own, and topics a passage may be silent about."""

from __future__ import annotations

_DETAILS = """
because of a shortage of staff|because of rising costs|because of bad weather|because of technical problems
due to a lack of funding|due to public pressure|due to safety concerns|due to an increase in demand
due to a change in the law|as a result of budget cuts|as a result of a long dispute|as a result of careful planning
as a result of strong competition|owing to poor health|owing to a family matter|in order to save money
in order to cut costs|in order to attract more visitors|in order to improve safety
in order to comply with regulations|in order to protect the environment|in order to reduce waste
in order to avoid further damage|in order to gain experience|to prevent infections|to ensure the best results
to save time|to raise awareness|to improve the overall quality|to keep the public informed|to meet growing demand
near the city centre|in a small town nearby|at the main station|in the northern part of the region
at a local hospital|in a suburb of London|in the capital|at the university|in several European countries
on the east coast|at an international airport|in a private residence|in front of a large crowd
at the annual conference|in the company's headquarters|across the whole country|in Germany|in Canada|in Australia
in the early morning|late at night|shortly after midnight|during the summer|in the winter months|over the weekend
on the following day|two weeks later|several months later|a few years earlier|at the end of the year
for the first time in decades|for more than ten years|after a long public debate|after months of negotiations
after a thorough investigation|after the meeting|after consulting experts|after a short break
after years of research|before the official announcement|before the end of the season|within a few hours
within three days|every two years|twice a week|once a month|at least three times a day|on a regular basis
at no extra cost|free of charge|for a fee of about 20 dollars|at a cost of several million dollars
at half the usual price|at a discount|with the support of local authorities|with the help of volunteers
with the approval of the government|with great success|with mixed results|with a team of experts
together with his brother|together with her colleagues|alongside several partners|under the supervision of a doctor
under the guidance of a professional|under strict conditions|without any prior warning|without any side effects
without a permit|despite strong criticism|despite warnings from experts|despite the bad weather
despite several setbacks|against the advice of his lawyers|according to a recent survey|according to several studies
according to official statistics|as recommended by experts|as required by law|as reported by local media
as confirmed by eyewitnesses|as part of a new programme|as part of a larger investigation|as a tribute to his father
making it the most popular choice|making it one of the largest in the world|making it easier to use
making it suitable for beginners|making it a cost-effective solution|leading to widespread protests
leading to a sharp drop in sales|leading to better results|leading to long delays|leading to serious complications
leading to his resignation|resulting in several injuries|resulting in higher prices|resulting in a loss of trust
resulting in significant savings|causing damage worth millions|causing great concern among residents
causing traffic jams|causing severe pain|causing the project to be delayed|which surprised many observers
which was widely criticized|which was praised by critics|which led to a lawsuit|which is a common mistake
which can be dangerous for children|which helps to boost the immune system|which has been linked to heart disease
which is especially important for older people|which later became a tradition|which received several awards
which can lower blood pressure|which reduces the risk of errors|which is considered the best option
which requires special training|which may take several weeks|so it should be used with caution
so it is best to ask a professional|so it is important to plan ahead|so regular checks are advised
and the police are still investigating|and the case is expected to go to court
and more details will be announced soon|and this caused an outcry|and it remains popular today
and it was later turned into a film|and the results were published|and it received positive reviews
and nobody was injured|and several people were taken to hospital|and the damage was quickly repaired
and the family has asked for privacy|and the decision was unanimous|and experts expect the trend to continue
and it has won several prizes|and tickets sold out within hours|and it is best stored in a cool, dry place
and it can be prepared in advance|and should be kept out of reach of children|and it is widely available online
and is recommended by most experts|and has no known side effects|and can be customized to individual needs
and it is available in several colours|using specially developed software|using traditional methods
using modern equipment|by hand|by law|on behalf of the government|in secret|for environmental reasons
for personal reasons|for religious reasons|for security reasons|for medical reasons
for the benefit of future generations|mainly among young people|particularly in rural areas
especially in large cities|especially during the holidays|mostly in the private sector
"""
_FILLERS = """
It is important to consult a doctor before making any changes.|This helps to reduce costs and improve quality.
Overall, the event was a success.|It is always a good idea to consult a professional before starting.
Be sure to follow the manufacturer's instructions carefully.
This makes it an excellent choice for families with children.
Regular maintenance can help prevent problems in the future.
The results may vary depending on individual circumstances.|The incident has sparked a debate about public safety.
The investigation is still ongoing, and further details are expected in the coming days.
The community has expressed its shock and sadness.
Experts agree that further research is needed to confirm these findings.
The project was widely regarded as a turning point.
This approach is recommended for beginners as well as experienced users.
It is essential to take proper safety precautions.|Always wear protective gloves and eyewear when doing this.
These benefits make it a popular option around the world.
The decision was met with criticism from several organizations.
The company plans to expand into new markets next year.
It also has a positive effect on mental health and well-being.
The cost can vary depending on the location and the provider.
If symptoms persist, seek medical attention immediately.|The team celebrated the result with their fans.
The film was both a critical and a commercial success.|The government has promised to take action on the matter.
Critics have questioned whether the measure will be effective.|The authorities have urged people to remain calm.
This can save a significant amount of time and money.|It is best to store it in a cool, dry place.
It should be used with caution by pregnant women.|Using high-quality ingredients will give the best results.
The exact cause is not yet fully understood by scientists.
The event attracted thousands of visitors from all over the world.|The book became an international bestseller.
The technology is expected to change the industry in the coming years.
Many users have reported positive experiences.|A balanced diet and regular exercise are also recommended.
Drinking plenty of water can speed up the process.|The building is now a popular tourist attraction.
The family has thanked everyone for their support.|This is one of the most common causes of the problem.
Early detection is the key to successful treatment.|The law was introduced to protect consumers.
Parents should talk to their children about the risks.|The company has not yet responded to requests for comment.
Safety should always be the first priority.|With proper care, it can last for many years.
The process usually takes several weeks to complete.|It is advisable to check the local regulations first.
The discovery led to a new field of research.|Both sides have agreed to continue the talks next month.
This has raised concerns about privacy and data protection.|The victims are expected to make a full recovery.
He is remembered as one of the greatest of his generation.|Her work continues to inspire people today.
The damage was estimated at several million dollars.|The tournament was broadcast in more than fifty countries.
Tickets for the event sold out within minutes.|It is suitable for all skin types, including sensitive skin.
The side effects are usually mild and temporary.
The software can be downloaded free of charge from the official website.
A backup should be made before the update is installed.|It is a good idea to compare prices before buying.
Customer service is available around the clock.|The new rules will come into force at the beginning of next year.
The school offers a wide range of courses.|The city is known for its rich history and culture.
The region has a mild climate throughout the year.|The population has grown steadily over the last decades.
The museum is open every day except Monday.|The animal is now considered an endangered species.
Environmental groups have welcomed the decision.|The policy has been adopted by several other countries.
The series was renewed for another season.|Sharing such experiences can help others in a similar situation.
In conclusion, it is a matter of personal preference.|These steps will help you achieve the desired result.
Following these tips will ensure a smooth experience.|Taking small steps every day can make a big difference.
The trial is scheduled to begin later this year.|The suspect has no previous criminal record.
The weather conditions made the rescue difficult.|Neighbours described him as a quiet and friendly man.
The president offered his condolences to the families.|The victory was seen as a major upset.
The injury will keep him out for the rest of the season.|The coach praised the effort of his players.
It contains important vitamins and minerals.|It is low in calories and high in fibre.
Cooking times depend on the size of the pieces.|Let it rest for a few minutes before serving.
The dish is traditionally served with rice or potatoes.
The contract can be cancelled at any time with one month's notice.
Employers are obliged to inform their staff in writing.|The tax rate depends on the annual income.
Insurance usually covers part of the costs.|Applicants must provide proof of identity.
"""
_SILENT = """
price=price cost $ dollar euro pound fee|cost=cost price $ dollar fee expensive cheap
weather=weather rain sun storm snow wind temperature|side effects=side effect adverse reaction risk
exact date=date 1 2 january february march april may june july august september october november december
number of victims=victim dead killed death injur|author's opinion=opinion think believe author feel
colour=colour color red blue green white black|opening hours=hour open close clock
phone number=phone call number telephone|warranty=warranty guarantee
legal consequences=legal law court illegal crime|environmental impact=environment climate pollution green nature
age of the people involved=age aged year old|dosage=dose dosage mg tablet pill
recommended temperature=temperature degree hot cold heat|calories=calorie kcal energy fat
political background=politic government party president minister|ticket sales=ticket sale sold
salary=salary pay wage earn income|religious aspects=religio church god faith|tax implications=tax
history of the company=company history founded|insurance=insurance insured|delivery time=deliver shipping arrive
"""


def _entries(text: str) -> tuple[str, ...]:
    return tuple(entry for entry in text.replace("\n", "|").split("|") if entry)


DETAILS = _entries(_DETAILS)
"""Endings of a sentence that tell a reason, a place, a time, a consequence or advice."""
FILLERS = _entries(_FILLERS)
"""Whole sentences that fit many texts and stand in none."""
SILENT = tuple((name, tuple(words.split())) for name, _, words in (e.partition("=") for e in _entries(_SILENT)))
"""A topic and the words that would show that a text speaks of it."""
OPENINGS = (
    "According to the passage, ",
    "According to the article, ",
    "According to the text, ",
    "The passage states that ",
    "The passage mentions that ",
    "The article says that ",
    "The text notes that ",
    "Based on the provided passages, ",
    "Based on the passages, ",
    "The passages indicate that ",
    "The article reports that ",
    "As stated in the passage, ",
    "In summary, ",
    "According to the author, ",
    "According to the report, ",
    "Based on the given information, ",
    "The provided text explains that ",
    "According to the source, ",
)
"""Ways to begin a claim that add nothing to it."""
