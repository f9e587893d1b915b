// A browser that looks at what is made for people. A module of its own, because
// nothing else needs a library that drives one.
module github.com/conversion-operator/conversion-operator/internal/test/browser

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
