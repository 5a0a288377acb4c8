"""Which language a text is in: right, or undecided, and never wrong about English."""

from __future__ import annotations

import timeit

import pytest

from guardrail.text import language
from guardrail.text.language import MIN_WORDS, language_of

ITALIAN = [
    "Il museo è aperto dal martedì alla domenica dalle dieci alle diciotto.",
    "La biblioteca comunale chiude alle sette di sera durante l'inverno.",
    "I pazienti con insufficienza renale devono ricevere una dose ridotta.",
    "Il contratto può essere rescisso con un preavviso di trenta giorni.",
    "Secondo il rapporto, le vendite sono aumentate del 12 % nel 2023.",
    "Non è possibile rimborsare i biglietti dopo la data dello spettacolo.",
    "L'azienda è stata fondata a Torino nel 1899 da Giovanni Agnelli.",
    "Per attivare il servizio basta inviare un messaggio al numero indicato.",
    "Gli studenti che superano l'esame ottengono sei crediti formativi.",
    "Questo farmaco non deve essere somministrato ai bambini sotto i due anni.",
    "La legge è entrata in vigore il primo gennaio dell'anno scorso.",
    "Nel centro storico si trovano numerose chiese costruite tra il XII e il XIV secolo.",
    "Il treno parte ogni ora dalla stazione di Santa Maria Novella.",
    "Sono necessari un documento d'identità e la tessera sanitaria.",
    "Dopo l'intervento il paziente può tornare a casa in giornata.",
    "Il server si riavvia quando la memoria disponibile scende sotto il limite.",
    "Le spese di spedizione sono a carico del cliente.",
    "La squadra ha vinto la partita per due a zero contro il Milan.",
    "Ogni socio ha diritto a un voto nell'assemblea generale.",
    "Più della metà degli intervistati preferisce lavorare da casa.",
    "Se il pagamento non arriva entro dieci giorni, l'ordine viene annullato.",
    "La temperatura dell'acqua era di circa venti gradi.",
]
GERMAN = [
    "Das Museum ist von Dienstag bis Sonntag von zehn bis achtzehn Uhr geöffnet.",
    "Die Bibliothek öffnet montags um zehn Uhr und schließt um sechs.",
    "Patienten mit Niereninsuffizienz müssen eine geringere Dosis erhalten.",
    "Der Vertrag kann mit einer Frist von dreißig Tagen gekündigt werden.",
    "Laut dem Bericht ist der Umsatz im Jahr 2023 um 12 % gestiegen.",
    "Eintrittskarten werden nach dem Tag der Vorstellung nicht erstattet.",
    "Das Unternehmen wurde 1899 in Turin von Giovanni Agnelli gegründet.",
    "Um den Dienst zu aktivieren, senden Sie eine Nachricht an die angegebene Nummer.",
    "Wer die Prüfung besteht, bekommt sechs Leistungspunkte.",
    "Dieses Arzneimittel darf Kindern unter zwei Jahren nicht gegeben werden.",
    "Das Gesetz ist am ersten Januar des vergangenen Jahres in Kraft getreten.",
    "In der Altstadt stehen viele Kirchen aus dem zwölften Jahrhundert.",
    "Der Zug fährt jede Stunde vom Hauptbahnhof ab.",
    "Sie brauchen einen Ausweis und die Karte Ihrer Krankenkasse.",
    "Nach dem Eingriff kann der Patient am selben Tag nach Hause gehen.",
    "Der Server startet neu, sobald der freie Speicher unter die Grenze fällt.",
    "Die Versandkosten trägt der Kunde, wenn die Ware zurückgeschickt wird.",
    "Die Mannschaft gewann das Spiel mit zwei zu null gegen den FC Bayern.",
    "Jedes Mitglied hat in der Versammlung eine Stimme.",
    "Mehr als die Hälfte der Befragten arbeitet lieber zu Hause.",
    "Die Regierung der Bundesrepublik hat das Programm im Mai verlängert.",
    "Die empfohlene Dosis beträgt bei Erwachsenen 50 mg am Tag.",
]
FRENCH = [
    "Le musée est ouvert du mardi au dimanche de dix heures à dix-huit heures.",
    "La bibliothèque municipale ferme à sept heures du soir en hiver.",
    "Les patients atteints d'insuffisance rénale doivent recevoir une dose réduite.",
    "Le contrat peut être résilié avec un préavis de trente jours.",
    "Selon le rapport, les ventes ont augmenté de 12 % en 2023.",
    "Les billets ne sont pas remboursés après la date du spectacle.",
    "L'entreprise a été fondée à Turin en 1899 par Giovanni Agnelli.",
    "Pour activer le service, il suffit d'envoyer un message au numéro indiqué.",
    "Les étudiants qui réussissent l'examen obtiennent six crédits.",
    "Ce médicament ne doit pas être donné aux enfants de moins de deux ans.",
    "La loi est entrée en vigueur le premier janvier de l'année dernière.",
    "Dans la vieille ville se trouvent de nombreuses églises du XIIe siècle.",
    "Le train part toutes les heures de la gare centrale.",
    "Une pièce d'identité et la carte de santé sont nécessaires.",
    "Après l'opération, le patient peut rentrer chez lui le jour même.",
    "Le serveur redémarre lorsque la mémoire libre passe sous la limite.",
    "Les frais d'envoi sont à la charge du client.",
    "L'équipe a gagné le match deux à zéro contre le Real Madrid.",
    "Chaque membre dispose d'une voix à l'assemblée générale.",
    "Plus de la moitié des personnes interrogées préfèrent travailler à la maison.",
    "Si le paiement n'arrive pas dans les dix jours, la commande est annulée.",
]
SPANISH = [
    "El museo está abierto de martes a domingo, de diez a seis de la tarde.",
    "Los pacientes con insuficiencia renal deben recibir una dosis menor.",
    "El contrato se puede rescindir con un preaviso de treinta días.",
    "Según el informe, las ventas aumentaron un 12 % en 2023.",
    "La empresa fue fundada en Turín en 1899 por Giovanni Agnelli.",
    "Este medicamento no debe administrarse a niños menores de dos años.",
    "La capital de España es la ciudad de Madrid.",
    "El tren sale cada hora desde la estación central.",
    "Los gastos de envío corren por cuenta del cliente.",
    "Más de la mitad de los encuestados prefiere trabajar en casa.",
]
PORTUGUESE = [
    "O museu está aberto de terça a domingo, das dez às dezoito horas.",
    "Os doentes com insuficiência renal devem receber uma dose reduzida.",
    "O contrato pode ser rescindido com um aviso prévio de trinta dias.",
    "Segundo o relatório, as vendas aumentaram 12 % em 2023.",
    "A empresa foi fundada em Turim em 1899 por Giovanni Agnelli.",
    "Este medicamento não deve ser dado a crianças com menos de dois anos.",
    "O comboio parte de hora em hora da estação central.",
    "Mais da metade dos entrevistados prefere trabalhar em casa.",
]
DUTCH = [
    "Het museum is van dinsdag tot en met zondag open van tien tot zes uur.",
    "Patiënten met nierfalen moeten een lagere dosis krijgen.",
    "Het contract kan met een termijn van dertig dagen worden opgezegd.",
    "Volgens het rapport is de omzet in 2023 met 12 % gestegen.",
    "Het bedrijf werd in 1899 in Turijn opgericht door Giovanni Agnelli.",
    "Dit geneesmiddel mag niet aan kinderen onder de twee jaar worden gegeven.",
    "De trein vertrekt elk uur van het centraal station.",
    "Meer dan de helft van de ondervraagden werkt liever thuis.",
]
NEIGHBOURS = [
    ("ca", "El museu és obert de dimarts a diumenge i l'entrada és gratuïta."),
    ("ca", "Els pacients amb insuficiència renal han de rebre una dosi més baixa."),
    ("ro", "Muzeul este deschis de marți până duminică și intrarea este liberă."),
    ("ro", "Pacienții cu insuficiență renală trebuie să primească o doză redusă."),
    ("pl", "Muzeum jest otwarte od wtorku do niedzieli i nie pobiera opłat."),
    ("pl", "Umowa może zostać rozwiązana przez każdą ze stron na piśmie."),
    ("sv", "Museet är öppet från tisdag till söndag mellan tio och sex."),
    ("sv", "Det är inte möjligt att få pengarna tillbaka efter föreställningen."),
    ("da", "Museet er åbent fra tirsdag til søndag mellem ti og seks."),
    ("da", "Det er ikke muligt at få pengene tilbage efter forestillingen."),
]
OTHER_SCRIPTS = [
    ("ru", "Музей открыт со вторника по воскресенье с десяти до шести."),
    ("ru", "Договор может быть расторгнут за тридцать дней."),
    ("uk", "Музей відкритий з вівторка по неділю, вхід вільний."),
    ("el", "Το μουσείο είναι ανοιχτό από την Τρίτη έως την Κυριακή."),
    ("he", "המוזיאון פתוח בימים שלישי עד ראשון."),
    ("ar", "المتحف مفتوح من الثلاثاء إلى الأحد."),
    ("fa", "این موزه از سه‌شنبه تا جمعه باز است و پارکینگ دارد."),
    ("hi", "संग्रहालय मंगलवार से रविवार तक खुला रहता है।"),
    ("th", "พิพิธภัณฑ์เปิดวันอังคารถึงวันอาทิตย์"),
    ("ko", "박물관은 화요일부터 일요일까지 문을 엽니다."),
    ("ja", "美術館は火曜日から日曜日まで開いています。"),
    ("zh", "博物馆星期二至星期日开放，星期一闭馆。"),
    ("zh", "患者每天服用 50 mg 的 Metformin，分两次。"),
    ("ja", "この製品は Windows 11 と macOS に対応しています。"),
]
NEVER_FOREIGN = [
    # everyday
    "The museum is open from Tuesday to Sunday, from ten to six.",
    "Tickets cannot be refunded after the date of the show.",
    "Entry is free on Mondays, but the tower costs five euros.",
    "More than half of those asked prefer to work from home.",
    "I don't think it's open, but you can call them to be sure.",
    "Her son was born in May and her father died in the war.",
    "Pour the sauce over the rice and let it stand for ten minutes.",
    "They come in per diem and are met at the door.",
    # medicine
    "Patients with renal insufficiency should receive a reduced dose of the drug.",
    "The recommended dose in adults is 50 mg orally once daily.",
    "Metformin reduces hepatic glucose production and improves insulin sensitivity.",
    "Common adverse reactions include nausea, vomiting, diarrhea and abdominal pain.",
    "De novo mutations in the gene were found in vitro and in vivo in five patients.",
    "An en bloc resection with adjuvant chemotherapy was performed in two cases.",
    "Non-small cell lung cancer is the most common type of lung cancer.",
    "Contraindicated in severe hepatic impairment, pregnancy and lactation.",
    "Patients die less often when Ménière's disease is treated early.",
    "Guillain-Barré syndrome and Sjögren's syndrome are autoimmune diseases.",
    # law
    "The lessee shall indemnify the lessor against all claims arising under this agreement.",
    "Force majeure events excuse performance for as long as they last.",
    "The court held that the doctrine of res judicata bars the second action.",
    "A writ of habeas corpus was granted, and the amicus curiae brief was filed pro bono.",
    "Either party may terminate on thirty days' written notice.",
    "The de facto director owed the company a duty of care.",
    "Article 8 of the Convention protects private and family life.",
    # technology
    "The server restarts as soon as free memory drops below the limit.",
    "Set the environment variable before you start the worker process.",
    "HTTP requests time out after thirty seconds unless configured otherwise.",
    "Each node replicates its log to a majority before it acknowledges a write.",
    "Run `pip install guardrail-stream` and import the package in your code.",
    "See https://example.org/docs/de/index.html for the list of options.",
    # names
    "Leonardo da Vinci painted the Mona Lisa between 1503 and 1506.",
    "Luis de la Cruz and Juan de los Santos live in Las Palmas de Gran Canaria.",
    "Vincent van Gogh and Ludwig van Beethoven never met Charles de Gaulle.",
    "Il nome della rosa by Umberto Eco was published in 1980 and sold millions.",
    'The film "La vita è bella" was directed by Roberto Benigni.',
    "The Hôtel de Ville and the Musée d'Orsay are in Paris.",
    "Angela Merkel was chancellor of Germany from 2005 to 2021.",
    "The Universidad Nacional de La Plata was founded in 1905 in Argentina.",
    "Die Zeit and Der Spiegel are German news magazines.",
    "The Rio de Janeiro team beat São Paulo in the final at the Maracanã.",
    "Frankfurt am Main lies on the river Main in the state of Hesse.",
    "Café Müller in Zürich serves crème brûlée and jalapeño dishes.",
    "Antoine de Saint-Exupéry wrote Le Petit Prince in New York.",
    "El Niño and La Niña are climate patterns in the Pacific Ocean.",
    "Giorgia Meloni met Emmanuel Macron and Olaf Scholz in Brussels on Friday.",
    "The word Schadenfreude comes from the German words Schaden and Freude.",
    "The Chinese name of Beijing is 北京 and that of Shanghai is 上海.",
    "Dmitri Shostakovich (Дмитрий Шостакович) was a Soviet composer.",
]
NEVER_DECIDED = [
    "",
    "42",
    "12 % – 15 %, 3.5 mg/kg",
    "Ciao!",
    "Bonjour à tous",
    "Aperto alle dieci.",
    "Nein, das ist falsch.",
    "Maria Rossi, Giuseppe Verdi, Luigi Bianchi, Anna Neri, Carlo Conti, Paolo Fox",
    "Universidad Nacional Autónoma, Ciudad Universitaria, Coyoacán, México",
    "Johann Wolfgang von Goethe, Friedrich von Schiller, Heinrich von Kleist",
    "Charles de Gaulle, Simone de Beauvoir, Guy de Maupassant, Alfred de Vigny",
    "def f(x): return {k: v for k, v in x.items() if v is not None}",
    "SELECT * FROM users WHERE id = 1 AND name <> 'a' OR age > 3;",
    "foo_bar.baz(qux) -> None; let x = [1, 2, 3];",
    "北京",
    "Дмитрий",
    "https://example.org/il/museo/e/la/citta/di/roma",
]

FOREIGN = [
    *[("it", text) for text in ITALIAN],
    *[("de", text) for text in GERMAN],
    *[("fr", text) for text in FRENCH],
    *[("es", text) for text in SPANISH],
    *[("pt", text) for text in PORTUGUESE],
    *[("nl", text) for text in DUTCH],
    *NEIGHBOURS,
    *OTHER_SCRIPTS,
]


@pytest.mark.parametrize(("language", "text"), FOREIGN)
def test_a_sentence_in_another_language_is_recognised(language: str, text: str):
    assert language_of(text) == language


@pytest.mark.parametrize("text", NEVER_FOREIGN)
def test_english_is_never_taken_for_another_language(text: str):
    assert language_of(text) in ("en", None)


def test_most_english_is_recognised():
    assert sum(language_of(text) == "en" for text in NEVER_FOREIGN) >= 0.7 * len(NEVER_FOREIGN)


@pytest.mark.parametrize("text", NEVER_DECIDED)
def test_names_code_numbers_and_fragments_have_no_language(text: str):
    assert language_of(text) is None


@pytest.mark.parametrize(("language", "text"), [(language, text) for language, text in FOREIGN if text.isascii()])
def test_capitals_do_not_matter(language: str, text: str):
    assert language_of(text.upper()) in (language, None)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("L’azienda è stata fondata a Torino nel 1899.", "L'azienda è stata fondata a Torino nel 1899."),
        ("La citta\u0300 e\u0300 aperta da lunedi\u0300 a venerdi\u0300.", "La città è aperta da lunedì a venerdì."),
    ],
)
def test_typography_does_not_matter(text: str, same: str):
    assert language_of(text) == language_of(same) == "it"


@pytest.mark.parametrize("words", range(1, MIN_WORDS))
def test_fewer_than_six_words_are_not_enough(words: int):
    assert language_of(" ".join("il museo della città è aperto".split()[:words])) is None


def test_two_languages_in_equal_parts_are_undecided():
    assert language_of("The museum is open on Mondays. Il museo è aperto il lunedì e la domenica.") is None


def test_the_work_is_bounded():
    sentence = "Il museo è aperto dal martedì alla domenica, ma non durante le feste. "
    language_of(sentence)
    short = min(timeit.repeat(lambda: language_of(sentence * 30), number=5, repeat=5))
    long = min(timeit.repeat(lambda: language_of(sentence * 30_000), number=5, repeat=5))
    assert long < 4 * short
    assert language_of(sentence * 30_000) == "it"


@pytest.mark.parametrize(
    "text", ["a" * 5_000, "a/" * 2_500, "`" * 5_000, "a'" * 2_500, "a-" * 2_500, "А" * 5_000, "д " * 2_500, "de " * 900]
)
def test_no_text_takes_long(text: str):
    assert min(timeit.repeat(lambda: language_of(text), number=1, repeat=5)) < 0.01


@pytest.mark.parametrize(
    "sign", ["`x`", "a@b", "a\\b", "a_b", "a:/b", "a/b", "a.b", "ü.1", "1/2", "/", ".", "a. b", ":", "`"]
)
def test_what_is_no_prose_is_never_overlooked(sign: str):
    for text in (sign, f"The door {sign} is open.", f"La porta {sign}, è aperta"):
        found = bool(language._NOT_PROSE_SIGN.search(text))
        assert found or language._NOT_PROSE.sub(" ", text) == text


@pytest.mark.parametrize("text", ["don't o'clock' re-open - x", "a1b2 _c", "A-b-c'd", "dell'arte"])
def test_ascii_words_are_words(text: str):
    assert language._ASCII_WORD.findall(text) == language._WORD.findall(text)


def test_every_hint_is_one_of_any():
    for word in (
        "nazione",
        "straße",
        "forêt",
        "niño",
        "ações",
        "lijkheid",
        "și",
        "mąż",
        "på",
        "æble",
        "città",
        "dessa",
    ):
        hinted = any(pattern.search(word) for pattern in language._HINT_PATTERNS.values())
        assert bool(language._ANY_HINT.search(word)) is hinted
