package language

import (
	"slices"
	"strings"
	"sync"
)

// shortened lists words with a usual short form in texts about software, the short form first.
// It only contains a pair if nearly every use of the short form means the long form.
const shortened = `a11y accessibility, admin administrator, app application, arg argument, async asynchronous, attr attribute,
	auth authentication, cert certificate, cmd command, config configuration, db database, dep dependency, dev development,
	dir directory, docs documentation, env environment, err error, fn function, func function, i18n internationalization,
	i18n internationalisation, img image, impl implementation, info information, init initialize, init initialise,
	js javascript, k8s kubernetes, l10n localization, l10n localisation, lib library, max maximum, md markdown, min minimum,
	msg message, nav navigation, param parameter, perf performance, pkg package, prod production, prop property,
	ref reference, repo repository, spec specification, stats statistics, sync synchronize, sync synchronise, temp temporary,
	ts typescript, var variable`

var shortForms = sync.OnceValue(func() map[string][]string {
	forms := map[string][]string{}
	for pair := range strings.SplitSeq(shortened, ",") {
		w := strings.Fields(pair)
		forms[w[0]] = append(forms[w[0]], w[1])
		forms[w[1]] = append(forms[w[1]], w[0])
	}
	return forms
})

// OtherForms returns the other forms of an English word of software, in lower case:
// "repository" for "repo" and the reverse. A plural counts as its singular.
func OtherForms(word string) []string {
	forms := shortForms()
	other := forms[word]
	if stem, ok := strings.CutSuffix(word, "ies"); ok && other == nil {
		other = forms[stem+"y"]
	}
	if stem, ok := strings.CutSuffix(word, "s"); ok && other == nil {
		other = forms[stem]
	}
	return slices.Clone(other)
}
