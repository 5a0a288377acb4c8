"""Wordings of an honest abstention, by language. Every pattern begins at the start of the sentence."""

from __future__ import annotations

from guardrail.text.lazy import LazyPattern

_GIVEN = r"(?:provided|given|supplied|available|retrieved|attached|uploaded)"
# "the documents", "any of the passages you provided": determiners and "provided" around a noun for a source.
_DETERMINER = r"(?:(?:any|none|all) of )?(?:(?:the|these|those|this|that|my|your|our|any|either|both) )?"
_RELATIVE = (
    r"(?: (?:that |which )?(?:i (?:was|have been|am) given|i have(?: access to)?|(?:was|were|you(?:'ve| have)?|are|is) "
    rf"{_GIVEN}|you (?:gave|sent) me|{_GIVEN}|above|at hand|at my disposal))?(?: (?:to|by|for) (?:me|you|us))?"
)
_DOCUMENTS = (
    rf"{_DETERMINER}(?:(?:{_GIVEN}|above|source|background|reference|current|relevant) )*"
    r"(?:documents?|documentation|contexts?|passages?|excerpts?|snippets?|search results?|knowledge base)"
    rf"{_RELATIVE}"
)
# Nouns that can also be a thing in the world ("the material contains no lead").
_SOURCE = (
    rf"(?:{_DOCUMENTS}|{_DETERMINER}(?:(?:{_GIVEN}|above|source|background|reference) )*"
    rf"(?:sources?|materials?|texts?|references?|information|data|content|files?|results?|articles?){_RELATIVE})"
)
_INFO = (
    r"(?:(?:any|enough|sufficient|the|specific|relevant|further|more|such|this|that|the necessary|the required|"
    r"additional|"
    r"clear|direct|a|an|reliable) )*"
    r"(?:answers?|information|info|details?|mentions?|data|context|documents?|sources?|references?|anything|specifics|"
    r"passages?|knowledge|explanation)"
)
_NOT = r"(?:do not|does not|did not|don't|doesn't|didn't)"

ENGLISH = (
    r"(?:i|we)(?: (?:could not|couldn't|cannot|can't|can not|was unable to|am unable to|were unable to|are unable to|"
    r"did not|didn't|do not|don't|was not able to|wasn't able to|am not able to)|'m unable to|'m not able to) (?:find|"
    r"locate|see|answer|determine|confirm|verify|tell|say|know|identify|establish|have access to|"
    rf"(?:have|provide|give|offer) (?:you )?(?:with )?(?:{_INFO}))\b",
    rf"(?:i|we) (?:have no|lack|am missing|are missing) {_INFO}\b",
    rf"(?:i|we) (?:have )?found (?:no {_INFO}\b|nothing)",
    r"(?:i|we)(?: have no idea| am not sure|'m not sure| am not certain|'m not certain)\b",
    rf"{_DOCUMENTS} {_NOT} (?:contain|include|provide|give|offer|list|describe|have|name|cover)\b",
    rf"{_SOURCE} {_NOT} (?:mention|say|specify|state|address|discuss|indicate|answer|tell|explain|refer to|touch on)\b",
    rf"{_SOURCE} {_NOT} (?:contain|include|provide|give|offer|have) {_INFO}\b",
    rf"{_SOURCE} (?:contains?|has|have|offers?|provides?|gives?|includes?|says?|makes?) (?:no {_INFO}\b|nothing about)",
    rf"n(?:one|either) of {_DOCUMENTS} (?:contain|include|mention|say|state|answer|list|describe|cover|indicate|"
    r"explain)s?\b",
    rf"n(?:one|either) of {_DOCUMENTS} (?:specif(?:y|ies)|address(?:es)?|discuss(?:es)?|refers? to|"
    rf"(?:provides?|gives?|offers?|ha(?:s|ve)) {_INFO})\b",
    rf"{_SOURCE} (?:is|are) silent (?:on|about)",
    rf"there(?: is| are| was| were|'s) (?:no|not enough|insufficient) {_INFO} (?:about|on|regarding|concerning|for|"
    rf"in|to)\b",
    rf"(?:no|not enough|insufficient) {_INFO} (?:(?:about|on|regarding|concerning|for) (?:[\w'-]+ ){{1,6}})?"
    rf"(?:is|are|was|were|could be) (?:found|available|given|provided|included|mentioned)\b",
    rf"nothing in {_SOURCE} (?:says|mentions|answers|addresses|covers|indicates|explains)\b",
    r"(?:this|that|the|your)(?: question)? (?:cannot|can't|could not|couldn't) be (?:answered|determined)",
    # Without a subject the sentence has to end there: "Unable to answer the door, he climbed in." tells something.
    r"(?:(?:unable|not able) to|cannot|can't|could not|couldn't) (?:answer|respond)"
    r"(?: (?:to )?(?:this|that|it|(?:the|this|that|your) (?:question|query)))?(?: (?:fully|directly|definitively))?"
    rf"(?: (?:based (?:only |solely )?(?:up)?on|from|with|using|given) {_SOURCE})?$",
)
# "X is not mentioned in the documents": here the source must be named, or it is a statement about X.
ENGLISH_PASSIVE = (
    r"(?P<topic>(?:[\w'’-]+ ){0,7}?[\w'’-]+?)(?: is|'s| are| was| were)(?: not|n't) (?:\w+ly )?"
    r"(?:(?:covered|mentioned|included|specified|stated|provided|addressed|available|discussed|found|given|listed|"
    r"described|answered|contained|named) )?(?:in|by|within|among|from) "
    rf"{_SOURCE}$"
)

_IT_INFO = r"(?:informazion[ei]|indicazion[ei]|rispost[ae]|dati|dettagli|menzione)"
_IT_SOURCE = (
    r"(?:document[oi]|font[ei]|test[oi]|contesto|materiale|passagg[io]|documentazione)"
    r"(?: (?:fornit[oiae]|disponibil[ie]|a disposizione))?"
)
_DE_INFO = r"(?:angaben?|informationen?|antwort(?:en)?|hinweise?|daten|auskunft|aussagen?)"
_DE_SOURCE = (
    r"(?:(?:vorliegenden|bereitgestellten|angegebenen|verfügbaren|gegebenen) )?"
    r"(?:quellen?|dokumenten?|dokumente|texten?|text|kontext|unterlagen|materialien|material)"
)
_DE_ABOUT = r"(?: (?:dazu|hierzu|darüber|dafür|zu dieser frage|zu diesem punkt|zu diesem thema|leider|mir))*"
_FR_INFO = r"(?:informations?|réponse|mention|détails?|données|renseignements?)"
_FR_SOURCE = r"(?:documents?|sources?|textes?|contexte|passages?|documentation)(?: (?:fournie?s?|disponibles?))?"
_ES_INFO = r"(?:información|respuesta|datos|mención|detalles)"
_ES_SOURCE = (
    r"(?:documentos?|fuentes?|textos?|contexto|pasajes?|documentación)(?: (?:proporcionad[oa]s?|disponibles?))?"
)

OTHER = (
    rf"(?:nei|nelle|nel|nella) {_IT_SOURCE} non (?:ci sono|c'è|si trovano?|ho trovato|trovo|sono presenti|è presente|"
    rf"vengono fornite|compaiono|risultano) (?:(?:alcuna|nessuna) )?{_IT_INFO}",
    rf"(?:i|le|il|la|gli) {_IT_SOURCE} non (?:contengono|contiene|riportano|riporta|forniscono|fornisce|includono|"
    rf"danno) "
    rf"(?:(?:alcuna|nessuna) )?{_IT_INFO}",
    rf"(?:i|le|il|la|gli) {_IT_SOURCE} non (?:menzionano|menziona|indicano|indica|dicono|dice|specificano|specifica)\b",
    r"non (?:ho trovato|ho|sono riuscit[oa] a trovare|riesco a trovare|dispongo di|trovo|ci sono) "
    rf"(?:(?:alcuna|nessuna|abbastanza|sufficienti|le) )?{_IT_INFO}",
    rf"(?:i|le|il|la|gli) {_IT_SOURCE} non (?:contengono|contiene|riportano|riporta|forniscono|fornisce) "
    rf"(?:quest[aeo]|tal[ei]|la|le) {_IT_INFO}",
    rf"non è (?:specificat|indicat|menzionat|riportat)[oa] (?:nei|nelle|nel|nella) {_IT_SOURCE}",
    r"non (?:lo so|so|sono in grado di rispondere|posso rispondere|saprei)\b",
    rf"(?:in )?(?:die|den|dem|das|der|im|aus den|aus dem) {_DE_SOURCE} (?:enthalten|enthält|finden sich|findet sich|"
    rf"finde ich|gibt es|geben|stehen|liefern|machen|macht|bieten){_DE_ABOUT} (?:keine?|nicht genügend) {_DE_INFO}",
    rf"(?:enthalten|nennen|liefern|bieten) die {_DE_SOURCE}{_DE_ABOUT} keine {_DE_INFO}",
    rf"(?:das|dies) (?:steht|geht) nicht (?:in|aus) den {_DE_SOURCE}(?: hervor)?",
    r"(?:diese|ihre|deine|die) frage (?:kann|konnte) ich(?: leider)? nicht beantworten|"
    r"kann ich (?:diese|ihre|deine|die) frage nicht beantworten",
    rf"(?:in )?(?:die|den|dem|das|der|im) {_DE_SOURCE} (?:sagen|sagt|steht){_DE_ABOUT} nichts\b",
    rf"(?:ich|wir) (?:habe|haben|konnte|konnten|finde|finden|besitze){_DE_ABOUT}(?: in den {_DE_SOURCE})?{_DE_ABOUT} "
    rf"keine {_DE_INFO}",
    r"(?:ich|wir) (?:weiß|wissen|kann|können|konnte)(?: (?:das|es|dazu|diese frage|ihre frage|deine frage|"
    r"leider))* nicht"
    r"(?: (?:sagen|beantworten|finden))?\b",
    rf"(?:dazu|hierzu|darüber) (?:finden sich|gibt es|liegen|habe ich){_DE_ABOUT} keine {_DE_INFO}",
    rf"es (?:gibt|liegen|finden sich){_DE_ABOUT} keine {_DE_INFO}",
    rf"(?:les|le|la|ces|ce) {_FR_SOURCE} ne (?:contiennent|contient|fournissent|fournit|donnent|donne|comportent) "
    rf"(?:pas (?:d'|de )|aucune? ){_FR_INFO}",
    rf"(?:les|le|la|ces|ce) {_FR_SOURCE} (?:ne mentionnent|ne mentionne|n'indiquent|n'indique|ne précisent|ne précise|"
    r"ne disent|ne dit|ne parlent|ne parle) (?:pas|rien)\b",
    rf"(?:les|le|la|ces|ce) {_FR_SOURCE} ne (?:contiennent|contient|fournissent|fournit) pas (?:cette|ces|"
    rf"l') ?{_FR_INFO}",
    rf"(?:ce|cela) n'est pas (?:mentionné|précisé|indiqué) dans (?:les|le|la) {_FR_SOURCE}",
    rf"je (?:n'ai (?:trouvé|pas trouvé|pas)|ne (?:trouve|dispose|dispose pas)) (?:aucune? |pas |d'|de |"
    rf"d'aucune )*{_FR_INFO}",
    r"je ne (?:sais|peux) pas(?: répondre)?\b",
    rf"(?:les|las|los|el|la|estos|estas) {_ES_SOURCE} no (?:contienen?|incluyen?|ofrecen?|proporcionan?|dan) "
    rf"(?:(?:ninguna|suficiente) )?{_ES_INFO}",
    rf"(?:las|los|el|la|estos|estas) {_ES_SOURCE} no (?:mencionan?|indican?|dicen?|especifican?)\b",
    r"no (?:he encontrado|encontré|encuentro|pude encontrar|tengo|dispongo de|hay|he podido encontrar) "
    rf"(?:(?:ninguna|suficiente) )?{_ES_INFO}",
    rf"en (?:los|las|el|la) {_ES_SOURCE} no (?:hay|se encuentra|aparece|encuentro) (?:ninguna )?{_ES_INFO}",
    rf"(?:eso|esto) no (?:se menciona|aparece|se indica|se especifica) en (?:los|las|el|la) {_ES_SOURCE}",
    r"no (?:lo sé|sé|puedo responder|puedo contestar)\b",
    r"(?:não (?:encontrei|há|tenho)|(?:os documentos|as fontes) não (?:contêm|mencionam)) "
    r"(?:(?:nenhuma|qualquer) )?(?:informaç(?:ão|ões)|resposta|dados)",
)
# Scripts without word spaces or inflected articles: the whole sentence.
WHOLE = (
    r"(?:在)?(?:所提供的|提供的|给定的|现有的|相关)?(?:资料|文档|文件|材料|上下文|来源|文中|文本|资料库)(?:中|里)?"
    r"(?:并)?(?:没有|未|并未|未能|找不到|没)(?:包含|提及|提到|找到|提供|说明|给出|涉及)?(?:任何)?(?:与此|与之|有关此|关于此|关于这|此)?"
    r"(?:问题|一点)?(?:的)?(?:相关|有关)?(?:的)?(?:信息|内容|答案|资料|说明|记录|这个问题的答案|该问题的答案)?(?:这一点|此事|这点)?",
    r"我(?:没有|未能|无法|找不到|不)(?:在(?:资料|文档|文件)中)?(?:找到|回答|提供|知道|确定)?(?:任何)?(?:此|这个|该|您的)?(?:问题)?"
    r"(?:的)?(?:相关|有关|足够的)?(?:的)?(?:信息|内容|答案|资料|文件|文档)?",
    r"لا (?:تتضمن|تحتوي|تذكر|توفر|تقدم|يتضمن|يحتوي|يذكر) (?:المصادر|الوثائق|المستندات|النصوص|النص|السياق|المصدر|"
    r"الوثيقة)"
    r"(?: المتاحة| المقدمة)?(?: (?:على|أي|أية))*(?: معلومات| إجابة| بيانات| تفاصيل)?(?: كافية)?"
    r"(?: (?:عن|حول|بشأن|على|في)?(?: ?(?:ذلك|هذا|هذه|الموضوع|السؤال|الأمر|المسألة|النقطة)){1,2})?",
    r"(?:لا أعرف الإجابة|لا أعرف|لا أعلم|لم أجد|لا أملك|لا توجد|لا يوجد|ليس لدي)(?: (?:أي|أية|معلومات|إجابة|كافية|"
    r"في|المصادر|"
    r"الوثائق|عن|حول|ذلك|هذا|الموضوع|السؤال))*",
)


# Clauses that a refusal may carry without asserting more.
IN_SOURCE = LazyPattern(rf"\b(?:in|within|from|among|across|based on|according to|given) {_SOURCE}")
HARMLESS = LazyPattern(
    rf"^ ?(?:this|that|any such) (?:question|{_INFO})\b|^ ?(?:this|that|it|so)$|"
    r"\b(?:(?:about|on|regarding|for|of|to|sur|su|zu|sobre) (?:that|this|it)(?: (?:topic|question|point|subject|"
    r"matter))?|"
    r"(?:that (?:is|would be) )?(?:needed |required |necessary )?to (?:answer|respond to|address|"
    r"help with)(?: from| with)?"
    r"(?: (?:this|that|it|you|(?:this|that|the|your) question))?|"
    r"(?:that )?you(?:'re| are) (?:asking|looking)(?: about| for)?|(?:that )?you asked(?: about| for)?|"
    r",? (?:sorry|unfortunately|i'm afraid))\b"
)


REFUSAL_START = LazyPattern(*ENGLISH, *OTHER)
REFUSAL_PASSIVE = LazyPattern(ENGLISH_PASSIVE)
REFUSAL_WHOLE = LazyPattern(*WHOLE)
