"""Words that can stand for each other, words that exclude each other, and verbs with their forms."""

from __future__ import annotations

# base past participle; -s and -ing forms follow the rules
_VERBS = """
found founded founded|defeat defeated defeated|beat beat beaten|praise praised praised
criticize criticized criticized|attack attacked attacked|visit visited visited|support supported supported
marry married married|kill killed killed|arrest arrested arrested|sue sued sued|accuse accused accused
replace replaced replaced|follow followed followed|lead led led|win won won|lose lost lost|buy bought bought
sell sold sold|write wrote written|direct directed directed|produce produced produced|build built built
design designed designed|discover discovered discovered|invent invented invented|publish published published
release released released|create created created|introduce introduced introduced|develop developed developed
destroy destroyed destroyed|capture captured captured|invade invaded invaded|conquer conquered conquered
elect elected elected|appoint appointed appointed|hire hired hired|fire fired fired|warn warned warned
inform informed informed|tell told told|ask asked asked|help helped helped|join joined joined
acquire acquired acquired|own owned owned|influence influenced influenced|teach taught taught
contact contacted contacted|interview interviewed interviewed|injure injured injured|shoot shot shot
cause caused caused|prevent prevented prevented|reduce reduced reduced|increase increased increased
improve improved improved|contain contained contained|cover covered covered|protect protected protected
surround surrounded surrounded|approve approved approved|reject rejected rejected|sign signed signed
adopt adopted adopted|launch launched launched|establish established established|organize organized organized
record recorded recorded|score scored scored|throw threw thrown|catch caught caught|kick kicked kicked
complete completed completed|receive received received|give gave given|take took taken|make made made|hold held held
find found found|use used used|reach reached reached|announce announced announced|describe described described
report reported reported|begin began begun|see saw seen|become became become|grow grew grown|come came come
go went gone|get got gotten|leave left left|play played played|work worked worked|live lived lived|move moved moved
return returned returned|serve served served|die died died|start started started|end ended ended|call called called
want wanted wanted|need needed needed|say said said|know knew known|think thought thought|keep kept kept
stop stopped stopped|open opened opened|close closed closed|pay paid paid|send sent sent|meet met met|run ran run
show showed shown|provide provided provided|include included included|require required required
allow allowed allowed|offer offered offered|remain remained remained|consider considered considered
spend spent spent|speak spoke spoken|rise rose risen|fall fell fallen|choose chose chosen|add added added
convert converted converted|arrive arrived arrived|happen happened happened|agree agreed agreed
decide decided decided
"""

# Regular verbs of one meaning in most sentences, with the same complements.
_SAME_VERBS = """
assist=help commence=start purchase=obtain demonstrate=reveal obtain=acquire aid=help attempt=endeavor
demand=require permit=allow enlarge=expand enhance=improve utilize=use require=need inform=notify employ=engage
construct=assemble collapse=crumble assassinate=murder mention=cite highlight=emphasize accomplish=achieve
reside=live inhabit=populate assert=claim declare=announce portray=depict verify=confirm examine=inspect
remove=eliminate select=pick produce=generate stop=halt end=conclude repair=mend gather=collect permit=allow
prohibit=ban forbid=ban discover=uncover injure=wound slay=kill respond=reply happen=occur recall=remember
state=declare finish=complete create=produce establish=found improve=enhance start=commence help=assist
collect=gather allow=permit achieve=accomplish investigate=probe resign=quit ruin=destroy rescue=save occur=happen
defeat=conquer demolish=destroy
"""

_SAME = """
combine=mix blend=mix slice=cut chop=cut beginning=start whole=entire mom=mother dad=father tv=television
television=TV vehicle=automobile next=following adults=grown-ups assistance=help cash=money trousers=pants
cookies=biscuits approximately=around gathered=collected collected=gathered relocated=moved headed=led
educated=schooled various=several diverse=varied notable=noteworthy renowned=famous prominent=well-known
ongoing=continuing lengthy=long brief=short massive=huge vast=huge steady=constant constant=steady essential=vital
key=crucial crucial=key harmful=damaging helpful=useful useful=helpful useless=worthless broken=damaged
bright=brilliant tough=difficult challenging=difficult complicated=complex unclear=uncertain obvious=evident
evident=obvious apparent=evident accurate=precise precise=exact valuable=precious attractive=appealing
popular=well-liked afraid=scared exhausted=tired thankful=grateful grateful=thankful individuals=people
passed-away=died vanished=disappeared disappeared=vanished concealed=hid called=named named=called
gathered=assembled comprised=included featured=included contained=included yearly=annual monthly=every-month
daily=every-day weekly=every-week throughout=all-through said=stated stated=said says=states bought=purchased
buy=purchase buys=purchases began=started begins=starts got=received gave=provided gives=provides
showed=demonstrated shows=demonstrates shown=demonstrated big=large large=big huge=enormous enormous=huge
small=little tiny=minuscule quick=fast fast=rapid rapid=fast quickly=rapidly rapidly=quickly roughly=approximately
about=approximately approximately=roughly around=about nearly=almost almost=nearly important=significant
crucial=vital vital=crucial essential=crucial difficult=challenging simple=straightforward famous=well-known
well-known=famous wealthy=rich rich=wealthy beautiful=attractive dangerous=hazardous hazardous=dangerous safe=secure
angry=furious sick=ill ill=sick entire=whole whole=entire numerous=many many=numerous several=multiple
various=different additional=further extra=additional main=primary primary=main chief=main major=main
usually=generally generally=usually typically=usually normally=usually often=frequently frequently=often
sometimes=occasionally occasionally=sometimes rarely=seldom seldom=rarely currently=presently immediately=instantly
instantly=immediately suddenly=abruptly finally=eventually eventually=ultimately initially=originally
originally=initially formerly=previously previously=earlier subsequently=later afterwards=later mostly=mainly
mainly=primarily largely=mostly primarily=mainly solely=only merely=only completely=entirely entirely=completely
totally=completely fully=completely partially=partly partly=partially extremely=very very=extremely highly=very
particularly=especially especially=particularly specifically=particularly also=additionally however=nevertheless
although=though though=although while=whereas whereas=while because=since children=kids kids=children movie=film
film=movie films=movies movies=films physician=doctor doctor=physician doctors=physicians physicians=doctors
lawyer=attorney attorney=lawyer attorneys=lawyers lawyers=attorneys automobile=car car=vehicle cars=vehicles
auto=car job=position company=firm firm=company companies=firms firms=companies country=nation nation=country
countries=nations nations=countries area=region region=area areas=regions regions=areas house=home residence=home
residents=inhabitants inhabitants=residents error=mistake mistake=error mistakes=errors errors=mistakes
problem=issue problems=issues goal=objective goals=objectives objective=goal aim=goal method=approach
approach=method methods=approaches way=manner benefit=advantage benefits=advantages advantage=benefit
advantages=benefits answer=response idea=concept ideas=concepts illness=disease disease=illness sickness=illness
diseases=illnesses medicine=medication medicines=medications medication=medicine medications=medicines photo=picture
photos=pictures photographs=photos photograph=photo picture=image pictures=images topic=subject topics=subjects
student=pupil students=pupils pupils=students teenager=adolescent teenagers=adolescents infant=baby infants=babies
baby=infant babies=infants people=individuals persons=people woman=lady ocean=sea forest=woodland forests=woodlands
street=road town=municipality village=settlement battle=fight conflict=struggle struggle=fight war=conflict
soldiers=troops troops=soldiers army=military policeman=officer authorities=officials officials=authorities
killing=murder killed=slain murdered=killed injured=hurt hurt=injured died=perished perished=died dead=deceased
deceased=dead asked=requested wanted=wished tried=attempted attempted=tried tries=attempts needed=required
needs=requires allowed=permitted permits=allows allows=permits allow=permit permit=allow enabled=allowed
enables=allows enable=allow prevents=stops prevented=stopped prevent=stop reduces=lowers reduced=lowered
reduce=lower increased=raised contains=includes comprises=contains became=turned-into used=utilized employed=used
built=constructed constructed=built erected=built made=created created=made produced=manufactured
manufactured=produced founded=established established=founded wrote=authored authored=wrote composed=wrote
received=got obtained=acquired acquired=obtained achieved=accomplished attained=achieved chose=selected
selected=chosen picked=chosen chosen=selected ended=concluded concluded=ended finished=completed completed=finished
stopped=halted halted=stopped departed=left arrived=came returned=came-back described=characterized claimed=asserted
asserted=claimed argued=contended contended=argued explained=clarified noted=remarked remarked=noted
emphasized=stressed stressed=emphasized mentioned=cited revealed=disclosed disclosed=revealed declared=proclaimed
confirmed=verified suggested=proposed proposed=suggested recommended=advised advised=recommended warned=cautioned
cautioned=warned criticized=condemned praised=commended commended=praised defeated=beat attacked=assaulted
assaulted=attacked captured=seized seized=captured destroyed=demolished demolished=destroyed damaged=harmed
resides=lives lived=resided resided=lived happened=occurred occurred=happened occurs=happens happens=occurs
located=situated situated=located includes=contains need=require must=need-to begun=started start=begin
starts=begins started=began sufficient=enough adequate=sufficient appropriate=suitable suitable=appropriate
proper=correct correct=right incorrect=wrong wrong=incorrect odd=strange strange=odd weird=strange unusual=uncommon
uncommon=rare rare=uncommon ordinary=normal normal=regular typical=usual usual=typical modern=contemporary
ancient=very-old initial=first final=last previous=earlier prior=earlier annual=yearly yearly=annual
worldwide=globally globally=worldwide fatal=deadly deadly=lethal lethal=deadly calm=tranquil brave=courageous
courageous=brave clever=smart smart=intelligent intelligent=smart crowded=packed gorgeous=beautiful delicious=tasty
tasty=delicious glad=happy happy=glad sad=unhappy unhappy=sad tired=exhausted worried=concerned scared=frightened
frightened=scared powerful=strong feeble=weak expensive=costly costly=expensive cheap=inexpensive inexpensive=cheap
free-of-charge=free approximately=about per=each fall=autumn autumn=fall start-up=startup percent=per-cent
children's=kids' automobile's=car's further=additional within=inside upon=on amid=during despite=in-spite-of
regarding=concerning concerning=regarding toward=towards towards=toward until=till
"""
# Each line of pairs: word=its opposite; both ways.
_ANTONYMS = """
increase=decrease increased=decreased increases=decreases increasing=decreasing rose=fell rises=falls rising=falling
grew=shrank grows=shrinks growing=shrinking raised=lowered raises=lowers raising=lowering gained=lost gains=loses
improved=worsened improves=worsens improving=worsening strengthened=weakened strengthens=weakens accelerated=slowed
expanded=contracted widened=narrowed higher=lower highest=lowest larger=smaller largest=smallest greater=lesser
bigger=tinier biggest=tiniest longer=shorter longest=shortest older=younger oldest=youngest faster=slower
fastest=slowest heavier=lighter stronger=weaker strongest=weakest better=worse best=worst earlier=later more=less
most=least before=after above=below over=under inside=outside within=outside first=last early=late won=lost win=lose
wins=loses winning=losing victory=defeat accepted=rejected accepts=rejects accept=reject approved=rejected
agreed=refused allows=forbids allow=forbid permitted=prohibited permits=prohibits supported=opposed supports=opposes
support=oppose supporting=opposing succeeded=failed succeed=fail success=failure successful=unsuccessful
successfully=unsuccessfully included=excluded includes=excludes including=excluding opened=closed opens=closes
open=closed began=ended begins=ends started=stopped starts=stops start=stop arrived=departed entered=left
bought=sold buy=sell buys=sells buying=selling hot=cold warm=cool hotter=colder wet=dry large=small big=small
long=short high=low tall=short heavy=light strong=weak hard=soft easy=difficult simple=complex common=rare
frequent=infrequent frequently=rarely often=rarely usually=rarely always=never fast=slow quickly=slowly
rapidly=slowly safe=dangerous healthy=unhealthy legal=illegal guilty=innocent public=private positive=negative
important=unimportant necessary=unnecessary possible=impossible effective=ineffective popular=unpopular
famous=unknown rich=poor wealthy=poor expensive=cheap old=new young=old modern=ancient true=false correct=incorrect
natural=artificial permanent=temporary visible=invisible northern=southern eastern=western north=south east=west
upper=lower top=bottom front=rear left=right internal=external domestic=foreign urban=rural maximum=minimum
majority=minority many=few present=absent alive=dead born=deceased married=divorced male=female mother=father
son=daughter brother=sister husband=wife men=women boys=girls day=night morning=evening summer=winter winter=summer
spring=autumn praised=criticized prevents=causes prevent=cause prevented=caused reduces=increases reduce=increase
reduced=increased lowers=raises helps=harms help=harm protects=endangers protect=endanger remembered=forgot
confirmed=denied confirms=denies hired=fired attacked=defended attack=defend united=divided appeared=disappeared
found=lost borrowed=lent taught=learned optimistic=pessimistic happy=unhappy friendly=hostile peaceful=violent
sweet=bitter clean=dirty fresh=stale smooth=rough thick=thin wide=narrow deep=shallow near=far full=empty
dark=bright benefits=drawbacks benefit=drawback advantage=disadvantage advantages=disadvantages profit=loss
profits=losses recommended=discouraged recommends=discourages avoid=seek avoids=seeks remove=add removed=added
remain=change voluntary=mandatory mandatory=optional active=inactive acute=chronic ally=enemy allies=enemies
innocent=guilty convicted=acquitted acquitted=convicted released=imprisoned deny=confirm experienced=inexperienced
lead=trail led=trailed leading=trailing upward=downward up=down soon=late
"""
TIMELESS = frozenset(
    "before after over under up down early late first last left right found lead led hard long right "
    "present soon alone "
    "fast open top front light old new day night more most many near high short full deep within above "
    "below cool few win lose help buy sell support lead "
    "best best start stop spring winter summer".split()
)
"""Opposites of several senses: they need a fitting neighbour before they are exchanged."""


ORDERS = tuple(
    "Check Put Place Add Use Cut Cook Bake Heat Boil Stir Mix Combine Remove Cover Wash Rinse Drain Pour "
    "Press Choose Select Open Turn Keep Let "
    "Make Take Apply Avoid Ensure Sprinkle Preheat Season Serve Bring Fill Install Remember Try "
    "Start Begin Wait Allow Store Hold Give Enter "
    "Type Scroll Go Move Measure Attach Repeat Return Transfer Whisk Slice Chop Peel Grill Roast Simmer "
    "Reduce Contact Visit Ask Call Write Read "
    "Follow Find Look Get Buy Clean Dry Soak Spread Insert Plant Always Squirt Tap Brush Pull Push Lift "
    "Lay Sit Stand Think Cool Freeze Thaw "
    "Rub Roll Fold Beat Toss Arrange Prepare Create Connect Locate Navigate Double-click Right-click "
    "Tighten Loosen Draw Drill Sand Paint".split()
)
"""First words of instructions."""


def verbs() -> dict[str, tuple[str, str, str]]:
    """Every form of a known verb with its base form, past and participle.

    Example:
        >>> verbs()["wrote"]
        ('write', 'wrote', 'written')
    """
    table: dict[str, tuple[str, str, str]] = {}
    for entry in _VERBS.replace("\n", "|").split("|"):
        if entry.strip():
            base, past, participle = entry.split()
            for form in (base, third(base), past, participle):
                table.setdefault(form, (base, past, participle))
    table["found"] = ("find", "found", "found")
    return table


def third(base: str) -> str:
    """The form for he, she and it.

    Example:
        >>> third("carry"), third("reach"), third("win")
        ('carries', 'reaches', 'wins')
    """
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def past(base: str) -> str:
    """The past of a regular verb."""
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + ("d" if base.endswith("e") else "ed")


_IRREGULAR_SAME = frozenset(("slay", "stop", "quit", "forbid", "ban"))


def synonyms() -> dict[str, str]:
    """A word and one that can stand for it; explicit forms only, no sense needs to be guessed."""
    table: dict[str, str] = {}
    for pair in _SAME_VERBS.split():
        one, other = pair.split("=")
        if one in _IRREGULAR_SAME or other in _IRREGULAR_SAME:
            continue
        table.setdefault(past(one), past(other))
        table.setdefault(third(one), third(other))
    for pair in _SAME.split():
        one, other = pair.split("=")
        table[one] = other.replace("-", " ") if other not in ("well-known", "start-up") else other
    return {one: other for one, other in table.items() if one not in NOT_SAFE}


NOT_SAFE = frozenset(
    "fall per about state states ends end start way war battle army woman killing while because since must need "
    "free-of-charge start-up percent children's automobile's within upon amid while firm job until aim auto produced "
    "initial final became around subject street village town fast approach picked found founds cites used made "
    "started composed answer finds major named called popular throughout next vehicle permit allow many numerous "
    "returned advantage "
    "advantages benefit benefits giving gave improved enhanced helped helps joined completed finished "
    "finishes completes completed big whole states prior got needed required goal goals objective baby "
    "infant infants disease illness diseases illnesses established increased raised raise received people".split()
) | frozenset(
    "settlement battle fight attained issue issues hurt house home residence army military conflict "
    "areas region regions area way student students pupil pupils nation".split()
)
"""Words of the tables that have too many senses to be exchanged blindly."""


def antonyms() -> dict[str, str]:
    """A word and one that excludes it."""
    table: dict[str, str] = {}
    for pair in _ANTONYMS.split():
        one, other = pair.split("=")
        table.setdefault(one, other)
        table.setdefault(other, one)
    return table
