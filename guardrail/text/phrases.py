"""Wordings that assert nothing, by language: pleasantries, questions, honest refusals.

Each pattern must match a whole clause: a wording that is not listed stays a claim and is checked.
"""

from __future__ import annotations

from guardrail.text.lazy import LazyPattern

_HELP = r"(?:help|assist|be of (?:help|assistance|service))(?: you)?"
_MORE = r"(?:anything|something) (?:else|more)"

# One clause of a pleasantry, case-folded, without punctuation. Bare assent ("Sure.", "Yes.", "Absolutely.") is missing
# on purpose: it may answer a yes-no question.
GREETING = LazyPattern(
    # English
    r"(?:hi|hello|hey|howdy|greetings|welcome)(?: (?:there|again|everyone|all|back|and welcome))*",
    r"good (?:morning|afternoon|evening|day|night|luck)",
    r"(?:(?:many )?thanks|thank you|thx|cheers)(?: (?:again|a lot|so much|very much|in advance))*",
    r"(?:thanks|thank you)(?: so much| very much)? for (?:asking|waiting|reaching out|contacting us|getting in touch|"
    r"(?:your|the) (?:great |good )?(?:question|message|patience|interest|feedback|inquiry|understanding))",
    r"you(?:'re| are) (?:very |most )?welcome|no problem|my pleasure|with pleasure|don't mention it",
    r"(?:that's |that is |what )?a? ?(?:great|good|excellent|interesting) question",
    rf"(?:i(?:'m| am)|i(?:'d| would) be|we(?:'re| are)) (?:always )?(?:very )?(?:happy|glad|here|pleased|delighted|"
    rf"ready) "
    rf"to {_HELP}(?: with (?:that|this|your question|anything else))?(?: today| further)?",
    rf"(?:very )?(?:happy|glad|pleased) to {_HELP}(?: with (?:that|this))?",
    rf"i can {_HELP} with (?:that|this)|(?:please )?let me know",
    rf"(?:please )?let me know if (?:you (?:need|have|want|would like) (?:{_MORE}|(?:any )?(?:other |more |further )*"
    rf"(?:questions?|help|information|details|assistance))|there(?:'s| is) {_MORE}(?: i can (?:do|help with))?|"
    r"there are (?:any )?(?:other |more |further )*questions|"
    rf"i can {_HELP}(?: with {_MORE}| further)?)",
    rf"(?:please )?(?:feel free to|do not hesitate to|don't hesitate to) (?:ask|reach out|contact me|ask me)"
    rf"(?: (?:if you (?:need|have) )?(?:{_MORE}|(?:any )?(?:other |more |further )*(?:questions?|help)))?",
    r"if you (?:have|need) (?:any )?(?:other |more |further )*(?:questions?|help|information|details|assistance)",
    r"i hope (?:this|that|it) (?:helps|was helpful|is helpful|answers your question)|hope (?:this|that) helps",
    r"have a (?:very )?(?:nice|great|good|lovely|wonderful|pleasant|safe) (?:day|one|evening|weekend|week|trip|time|"
    r"afternoon|stay|journey)(?: ahead)?",
    r"take care|goodbye|good bye|bye(?: bye)?|see you(?: soon| later| again| then)?|all the best|enjoy",
    r"(?:best|kind|warm) (?:regards|wishes)|sincerely(?: yours)?|yours (?:sincerely|faithfully|truly)|"
    r"just ask|ask away",
    r"dear (?:\[[^\]]{1,40}\]|all|team|colleagues?|customers?|friends?|editor|reader|neighbou?rs?|sir|madam|"
    r"sir or madam|sirs|hiring (?:manager|team|committee)|(?:mr|mrs|ms|dr|prof|professor)\.? [\w'’-]+)",
    r"happy [a-z]{2,12}ing",
    r"(?:i(?:'m| am) )?(?:so |very )?sorry(?: about that| for (?:that|the (?:confusion|inconvenience|delay|wait)))?",
    r"(?:i|my) apologi[sz]e?s?(?: for (?:that|the (?:confusion|inconvenience|delay|wait)))?",
    r"let me (?:check|see|look|help|think|have a look|take a look|explain)(?: (?:that|this|it))?(?: for you)?",
    # Italian
    r"ciao(?: a tutti)?|salve|buongiorno|buon giorno|buonasera|buona sera|buonanotte|benvenut[oaie]|arrivederci|"
    r"a presto|prego|di nulla|cordiali saluti|(?:ti|la) saluto",
    r"(?:molte |mille )?grazie(?: mille| a te| a lei| per (?:la (?:domanda|pazienza)|aver(?:ci|mi)? (?:contattato|"
    r"chiesto)))?",
    r"(?:sono )?(?:felice|lieto|lieta|qui per|contento|contenta)(?: di)? (?:aiutar(?:ti|la|vi)|essere d'aiuto|aiutare)",
    r"(?:buona|buon|bella) (?:giornata|serata|fortuna|viaggio|lavoro|settimana)|ottima domanda|bella domanda",
    r"spero (?:di esser(?:e stato d'aiuto|ti stato utile)|che (?:questo )?(?:ti |le )?(?:sia|possa) (?:d'aiuto|utile))",
    r"(?:fammi|mi faccia|fatemi) sapere se (?:hai|ha|avete|ti|le|vi) (?:bisogno d'altro|serve altro|altre domande|"
    r"bisogno di (?:altro|aiuto)|servono altre informazioni)|mi dispiace|mi scuso|scusa|scusi",
    # German
    r"hallo(?: zusammen)?|guten (?:tag|morgen|abend)|gute nacht|willkommen|servus|moin|grüß gott|tschüss|"
    r"auf wiedersehen|bis bald|viel erfolg|viel glück|gerne?|sehr gerne?|gern geschehen|bitte(?: schön| sehr)?|"
    r"kein problem",
    r"(?:vielen |herzlichen |besten )?dank(?:e)?(?: schön| sehr| dir| ihnen)?(?: für (?:ihre|deine|die) (?:frage|"
    r"nachricht|"
    r"geduld|anfrage))?",
    r"ich helfe (?:dir|ihnen|euch)? ?(?:gerne?)(?: weiter)?|(?:gute|tolle|interessante) frage|"
    r"ich (?:hoffe|hoff),? das hilft(?: (?:dir|ihnen))?(?: weiter)?",
    r"(?:einen )?schönen (?:tag|abend)(?: noch)?|(?:viele|liebe|freundliche|mit freundlichen) grüße?n?|"
    r"entschuldigung|es tut mir leid|tut mir leid",
    # French
    r"bonjour|bonsoir|salut|bienvenue|au revoir|à bientôt|de rien|je vous en prie|avec plaisir|cordialement|"
    r"bonne (?:journée|soirée|question|chance)|(?:merci)(?: beaucoup| bien)?(?: pour votre (?:question|message|"
    r"patience))?|"
    r"je suis (?:ravie?|heureux|heureuse|là) (?:de|pour) vous aider|désolée?|je suis désolée?|excellente question",
    # Spanish
    r"hola|buenos días|buenas(?: tardes| noches)?|bienvenid[oa]s?|adiós|hasta (?:luego|pronto)|de nada|con gusto|"
    r"con mucho gusto|(?:muchas )?gracias(?: por (?:su|tu) (?:pregunta|paciencia|mensaje|consulta))?|"
    r"(?:estoy|estaré) (?:aquí para|encantad[oa] de) ayudar(?:te|le|lo|la)?|que tenga(?:s)? (?:un )?buen día|"
    r"buena pregunta|lo siento|un saludo|saludos(?: cordiales)?",
    # Portuguese, Dutch, Polish, Russian, Chinese, Japanese, Arabic
    r"olá|bom dia|boa (?:tarde|noite)|obrigad[oa]|dank je(?: wel)?|dank u(?: wel)?|goedemorgen|goedemiddag|tot ziens|"
    r"dzień dobry|cześć|dziękuję|здравствуйте|привет|спасибо|пожалуйста|до свидания",
    r"你好|您好|谢谢(?:您|你)?|不客气|再见|很高兴(?:为您服务|帮助您|能帮到您)|祝您(?:愉快|生活愉快|有美好的一天)|"
    r"こんにちは|ありがとうございます|どういたしまして",
    r"مرحب(?:ا|اً|ًا)(?: بك)?|أهلا(?:ً)?(?: وسهلا(?:ً)?)?|شكرا(?:ً)?(?: لك| جزيلا)?|السلام عليكم|مع السلامة|"
    r"يسعدني مساعدتك|على الرحب والسعة",
)

# Openers that announce an answer; greetings only with an exclamation mark.
OPENER = LazyPattern(
    r"sure(?: thing)?|of course|certainly|gladly|great|okay|ok|alright|all right|certo|certamente|volentieri|"
    r"natürlich|klar|sicher|bien sûr|claro|por supuesto|当然(?:可以)?|好的"
)

# Leading words that may stand before a question or a refusal without adding a statement.
SOFTENER = LazyPattern(
    r"(?:hi|hello|hey|sorry|i'm sorry|i am sorry|sorry about that|unfortunately|regrettably|i'm afraid|"
    r"i am afraid|thanks|"
    r"thank you|sure|of course|certainly|okay|ok|great|well|and|so|also|however|but|i'm afraid that|"
    r"i'm sorry but|sorry but|unfortunately though)\b,?",
    r"(?:ciao|salve|certo|purtroppo|mi dispiace|mi dispiace ma|spiacente|scusi|e|però)\b,?",
    r"(?:hallo|leider|gerne|entschuldigung|es tut mir leid|tut mir leid|und|aber)\b,?",
    r"(?:bonjour|malheureusement|désolée?|je suis désolée?|et|mais)\b,?",
    r"(?:hola|lamentablemente|desafortunadamente|lo siento|claro|y|pero)\b,?",
    r"(?:你好|您好|抱歉|很抱歉|对不起|不好意思|很遗憾)[，,]?",
    r"(?:عذرا(?:ً)?|للأسف|آسف|مرحبا(?:ً)?)[،,]?",
)

QUESTION_START = LazyPattern(
    r"(?:who|whom|whose|what|which|when|where|how|do|does|did|is|are|was|were|am|can|could|would|will|shall|should|may|"
    r"might|have|has|had|what's|who's|where's|how's)\b",
    r"(?:any|anything|something) (?:else|more|other|further)\b|(?:need|want) (?:any|more|help|anything|to)\b|really$|"
    r"(?:in|for|at|on|to|from|with) (?:which|what|whom)\b|why (?:do|did) you (?:ask|want)",
    r"(?:chi|che|cosa|che cosa|quale|quali|qual|quando|dove|come|quanto|quanta|quanti|quante|posso|può|puoi|"
    r"possiamo|vuoi|"
    r"vuole|desidera|desideri|intendi|intende|hai|ha|avete|serve|ti serve|le serve|preferisci|preferisce|cerchi|cerca|"
    r"c'è|ci sono|in (?:che|quale)|a (?:che|quale)|di (?:che|quale)|per (?:che|quale))\b",
    r"(?:wer|wen|wem|was|welche[rsnm]?|wann|wo|wohin|woher|wie|kann|können|könnten|könntest|möchten|möchtest|meinen|"
    r"meinst|haben|hast|brauchen|brauchst|soll|sollen|darf|ist|sind|gibt es|suchen|suchst|noch (?:fragen|etwas)|"
    r"für welche[ns]?)\b",
    r"(?:qui|que|quoi|quel(?:le)?s?|quand|où|comment|combien|puis-je|pouvez-vous|voulez-vous|souhaitez-vous|avez-vous|"
    r"est-ce que|y a-t-il|cherchez-vous|parlez-vous|pensez-vous)\b|qu'est-ce que\b|(?:à|de|pour) quel",
    r"¿|(?:quién|qué|cuál|cuáles|cuándo|dónde|cómo|cuánto|puedo|podría|quiere|quieres|desea|deseas|necesita|necesitas|"
    r"tiene|tienes|hay|se refiere|te refieres)\b",
    r"请问|您|你|我(?:可以|能)|还有|需要|是否|有什么|什么|哪|谁|怎么|如何|何时|为您",
    r"(?:هل|كيف|ما|ماذا|من|متى|أين|أي|كم)\b",
)

# Questions that state something: the reader learns it from the question itself.
LOADED_QUESTION = LazyPattern(
    r"\b(?:did|do) (?:you|u) (?:know|realize|realise|hear|notice|remember) (?:that\b|(?!who|what|when|where|which|"
    r"how|if))",
    r"^(?:do|did|does|is|are|was|were|has|have|had|can|could|would|will|should)n[o']?t\b|"
    r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should) (?:it|they|you|we|he|she|this|"
    r"that|there) not\b|"
    r"\b(?:true|aware|clear|fact|right|obvious|known|sure|agree|possible|believe|surprised|amazing|given|"
    r"assume) that\b|"
    r"\b(?:were|are) you aware\b|^(?:why|how come)\b|\bwould(?:n't)? you (?:believe|have thought)\b|"
    r"\bcan you believe\b|"
    r"^how can (?!i |we |you )|^what makes\b|\bwho (?:knew|would have thought|else but)\b",
    r"\b(?:lo )?(?:sapevi|sapeva|sapevate|sai|sa) (?:che|già)\b|\blo sapevi\b|^non è (?:vero|forse)\b|^perché\b|"
    r"\bvero che\b|^non\b",
    r"\b(?:wusstest|wussten|weißt|wissen) (?:du|sie|ihr)\b|^(?:stimmt es|ist es nicht|warum|wieso|weshalb)\b|"
    r"\bwahr,? dass\b",
    r"\b(?:saviez|savez)-vous\b|\bsais-tu\b|^(?:n'est-ce|pourquoi)\b|\bvrai que\b",
    r"\b(?:sabías?|sabía usted|sabe) que\b|^¿?por qué\b|\b(?:verdad|cierto) que\b|^¿?no\b",
    r"知道|难道|不是.*吗|为什么",
    r"هل (?:تعلم|كنت تعلم|تعرف)|^(?:ألا|أليس|لماذا|ألم)",
)
# The part after the last comma of a tag question.
TAG = LazyPattern(
    r"(?:right|correct|yes|no|ok|okay|huh|eh|true|don't you think|don't you agree|you know)",
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|ca|wo)n'?t (?:it|they|he|she|you|we|"
    r"there|i)",
    r"(?:is|are|was|were|do|does|did|has|have|can|will) (?:it|they|he|she|you|we|there)(?: not)?",
    r"vero|giusto|no|non è vero|non è così|oder|nicht wahr|stimmt's|richtig|gell|n'est-ce pas|non|d'accord|verdad|"
    r"cierto|no es así",
    r"对吧|是吧|对吗|是吗|不是吗|أليس كذلك|صحيح",
)

RESTATED = LazyPattern(
    r"(?:you|the user|your question)(?:'ve| have| had| were|'re| are)? (?:just )?(?:asked|asking|asks|"
    r"wanted to know|want to know|"
    r"would like to know|wondering|wondered|inquired)(?: me| us)? (?:about|who|what|when|where|which|how|whether|"
    r"if|for)\b",
    r"(?:mi )?(?:hai|ha|avete) (?:chiesto|domandato) (?:chi|cosa|che cosa|quando|dove|quale|quali|come|se|quanto|"
    r"di|informazioni)\b",
    r"(?:du hast|sie haben|ihr habt) (?:mich )?(?:gefragt|wissen wollen),? (?:wer|was|wann|wo|welche[rsnm]?|wie|"
    r"ob|nach)\b",
    r"(?:vous avez|tu as) demandé (?:qui|quand|où|quel|quelle|comment|si|combien)\b",
    r"(?:me )?(?:has|ha|ustedes han) preguntado (?:quién|qué|cuándo|dónde|cuál|cómo|si|por)\b|(?:preguntaste|"
    r"preguntó) (?:quién|cuándo|si)\b",
)
