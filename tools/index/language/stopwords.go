package language

import (
	"strings"
	"sync"
)

// lists holds the stop words of each language: articles, pronouns, prepositions, conjunctions,
// auxiliary verbs and question words. Queries lose their stop words. Stop words also identify
// the language of a text.
var lists = map[string]string{
	"en": `a about above after again against all also am an and any are as at be because been before being below between both
		but by can cannot could did do does doing down during each few for from further had has have having he her here hers him his
		how i if in into is it its itself just me might more most must my no nor not now of off on once only or other our out
		over own same shall she should so some such than that the their theirs them then there these they this those through to
		too under until up upon us very was we were what when where which while who whom why will with would you your yours`,
	"de": `der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren wird werden wurde wurden hat
		haben hatte ich du er sie es wir ihr mich mir dich dir ihm ihn uns euch sich mein meine dein seine ihre unser nicht kein
		keine mit von vom zu zum zur auf aus bei beim für gegen nach über unter um ohne durch im am an in vor als wie wenn dann
		dass weil da so auch nur noch schon sehr mehr kann können muss müssen soll sollte man was wer wo wann warum welche welcher
		welches wieso hier dort diese dieser dieses diesen bis ob`,
	"fr": `le la les un une des du de au aux et ou mais est sont était être été avoir a ont il elle ils elles je tu nous vous on me te
		se ce cet cette ces mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ne pas plus que qui quoi dont où quand
		comment pourquoi quel quelle quels quelles dans en sur sous avec sans pour par vers chez entre si comme aussi donc car y
		très tout tous toute toutes peut faire fait lorsque afin`,
	"es": `el la los las un una unos unas de del al y o pero es son era ser está están fue ha han he haber hay yo tú él ella ellos
		nosotros usted me te se lo le les su sus mi mis tu tus nuestro este esta estos estas ese esa esos que qué quien quién cuál
		cuando cuándo donde dónde como cómo por porque para con sin sobre entre hasta desde en a no ni si sí más muy también ya
		puede pueden cada todo todos`,
	"it": `il lo la i gli le un uno una di del dello della dei degli delle al allo alla ai alle da dal dalla in nel nella nei con su sul
		sulla per tra fra e ed o ma è sono era essere stato ha hanno ho avere io tu lui lei noi voi loro mi ti si ci vi che chi cui
		come quando dove perché quale quali cosa non più anche se questo questa questi queste quello quella ogni tutto tutti può`,
	"pt": `o a os as um uma uns umas de do da dos das no na nos nas ao aos à às em por pelo pela para com sem sobre entre até desde e ou
		mas é são foi era ser está estão tem têm ter há eu tu ele ela eles nós você vocês me te se lhe seu sua seus suas meu minha
		este esta esse essa isso isto que quem qual quais quando onde como porque não mais muito também já pode cada todo todos`,
	"nl": `de het een en of maar is zijn was waren wordt worden werd heeft hebben had ik jij je hij zij ze wij we jullie u mij hem haar
		ons hun mijn jouw dit dat deze die er hier daar niet geen met van voor naar op aan in uit bij over onder tegen door om te tot
		als dan dus ook nog al wel kan kunnen moet zal wat wie waar wanneer waarom hoe welke`,
	"sv": `en ett den det de och eller men är var vara varit har hade jag du han hon vi ni man mig dig sig sin sitt sina denna detta
		dessa som att inte på i av för med till från om hos över under mellan mot utan när där här hur vad vem varför vilken vilket
		kan ska skulle måste också så än`,
	"da": `en et den det de og eller men er var være har havde jeg du han hun vi i man mig dig sig sin sit sine denne dette disse som at
		ikke på af for med til fra om hos over under mellem mod uden når hvor her hvordan hvad hvem hvorfor hvilken kan skal skulle
		må også så end blev bliver`,
	"no": `en ei et den det de og eller men er var være har hadde jeg du han hun vi dere man meg deg seg sin sitt sine denne dette disse
		som at ikke på av for med til fra om hos over under mellom mot uten når hvor her hvordan hva hvem hvorfor hvilken kan skal
		skulle må også så enn ble blir`,
	"fi": `ja tai mutta on ovat oli olivat ei en et emme eivät minä sinä hän me te he se ne tämä tuo nämä joka jotka että kun jos kuin
		niin myös vain vielä mitä mikä missä miten miksi milloin kuka olla voi ovat sitä siitä jonka`,
	"pl": `i w z na do od po za nad pod przed przez dla bez o u przy ze we się nie tak to ten ta te tego tej tym tych jest są był była
		było być mam ma mają ja ty on ona ono my wy oni jak co kto gdzie kiedy dlaczego który która które których czy ale lub albo
		oraz że żeby aby jeśli gdy już tylko także może można`,
	"cs": `a i v ve z ze na do od po za nad pod před pro bez o u při se si ne to ten ta tento tato toto je jsou byl byla bylo být mám má
		mají já ty on ona my vy oni jak co kdo kde kdy proč který která které nebo ale že aby jestli když už jen také může lze`,
	"tr": `ve veya ama ile bir bu şu o ben sen biz siz onlar için gibi kadar daha çok en değil mi mı mu mü ne nasıl neden nerede hangi
		kim ki de da olan olarak var yok her bazı sonra önce ise ya`,
	"ro": `și sau dar este sunt era fi fost are au am eu tu el ea noi voi ei ele un o una unui unei de la în din pe cu fără pentru prin
		despre între care ce cine cum unde când nu mai foarte acest această acestea dacă că să se își`,
	"hu": `a az egy és vagy de hogy nem is van volt vannak lesz én te ő mi ti ők ez azt ezt ami aki mely mert ha mint csak még már
		nagyon hol mikor miért hogyan melyik minden meg lehet kell`,
	"id": `yang dan atau tetapi di ke dari untuk dengan pada oleh dalam adalah ini itu tidak bukan akan sudah telah dapat bisa saya anda
		kami kita mereka dia apa siapa bagaimana kapan mengapa sebagai juga lebih jika karena agar`,
	"vi": `và hoặc nhưng là của cho với các những một trong trên dưới từ đến được bị có không này đó kia khi nếu thì mà như để bởi vì
		tôi bạn chúng ta họ nó làm gì sao thế nào ở đâu cũng đã đang sẽ rất`,
	"ru": `и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее её мне было вот от меня еще ещё нет
		о из ему теперь когда даже ну ли если уже или ни быть был него до вас нибудь вам ведь там потом себя ей может они тут где
		есть для мы тебя их чем была сам чтоб без чего раз тоже себе под будет тогда кто этот того потому этого какой этом через эти
		при об это эта или чтобы почему сколько зачем`,
	"uk": `і й та в у на не що він я з із як а то все вона так його але ти до же ви за би по її мені було від мене ще ні о про їх коли де
		є для ми або чи це цей ця ці який яка які чому тому якщо щоб може бути був під при`,
	"ar": `في من إلى الى على عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم نحن أنا انا أنت ما ماذا لماذا كيف متى أين اين هل لا لم لن أن ان
		إن كان كانت يكون قد كل أو او ثم بعد قبل عند بين حتى إذا اذا لكن غير أي اي`,
	"fa": `و در به از که این آن با را برای است بود شد می یا تا بر هم نیز هر چه چگونه چرا کجا کی من تو او ما شما آنها اگر اما`,
	"hi": `का की के में से को है हैं था थी थे और या पर यह वह ये वे ने एक इस उस हो कर कि जो तो भी नहीं क्या कैसे कब कहाँ क्यों कौन अपने लिए साथ तक`,
	"el": `ο η το οι τα του της των τον την και ή αλλά είναι ήταν να θα με σε από για στο στη στην στον που πώς τι ποιος πότε γιατί δεν
		μην αν ως κάθε αυτό αυτή`,
	"he": `של את על אל לא כן זה זו הוא היא הם אני אתה אנחנו מה מי איך למה מתי איפה אם או גם כי כל עם יש אין היה`,
}

// stops maps each word to the languages whose lists contain the word: bit i is for order[i].
type stops struct {
	order []string
	of    map[string]uint64
}

var table = sync.OnceValue(func() stops {
	t := stops{of: make(map[string]uint64, 3000)}
	for _, l := range strings.Fields("en de fr es it pt nl sv da no fi pl cs tr ro hu id vi ru uk ar fa hi el he") {
		bit := uint64(1) << len(t.order)
		t.order = append(t.order, l)
		for w := range strings.FieldsSeq(lists[l]) {
			t.of[w] |= bit
			t.of[Fold(w)] |= bit // people also type words without accents
		}
	}
	return t
})

// IsStop reports whether a lower-case word is a stop word in one of the languages, or in
// English if langs is empty.
func IsStop(word string, langs ...string) bool {
	t := table()
	in := t.of[word]
	if in == 0 {
		return false
	}
	if len(langs) == 0 {
		return in&1 != 0
	}
	for _, l := range langs {
		for i, o := range t.order {
			if o == Base(l) && in>>i&1 != 0 {
				return true
			}
		}
	}
	return false
}

// requests holds English words that introduce a request for a text about a subject.
var requests = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields("describe discover explain find guide introduction learn overview show tell tutorial understand") {
		all[w] = true
	}
	return all
})

// IsRequest reports whether a lower-case word often begins a request in English ("explain how
// …", "an introduction to …").
func IsRequest(word string) bool { return requests()[word] }
