package web

import "strings"

// DeviceOf is what a person would call the browser that sends such a User-Agent,
// such as "Firefox on Linux". It is a hint alone: browsers say what they like.
func DeviceOf(agent string) string {
	browser, system := "A browser", ""
	for _, b := range [...][2]string{
		// Most browsers claim to be the ones further down too.
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	} {
		if strings.Contains(agent, b[0]) {
			browser = b[1]
			break
		}
	}
	for _, o := range [...][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"CrOS", "ChromeOS"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	} {
		if strings.Contains(agent, o[0]) {
			system = " on " + o[1]
			break
		}
	}
	return browser + system
}
