// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// number formats n with thin spaces that do not break lines: 1 234 567.
func number[N int | int64](n N) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// count formats a number of things.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return number(n) + " " + what
}

var segments = regexp.MustCompile(`\.[^.\[]+|\["[^"]*"\]|\[\*\]`)

// split cuts a path where a line may break: .spec .steps[*] .name. A [*] stays
// with its list.
func split(path string) []string {
	if strings.Join(segments.FindAllString(path, -1), "") != path {
		return []string{path}
	}
	var parts []string
	for _, segment := range segments.FindAllString(path, -1) {
		if segment == "[*]" && len(parts) > 0 {
			parts[len(parts)-1] += segment
			continue
		}
		parts = append(parts, segment)
	}
	return parts
}

// breakable formats a path with line breaks between names.
func breakable(path string) template.HTML {
	parts := split(path)
	for i, part := range parts {
		parts[i] = template.HTMLEscapeString(part)
	}
	return template.HTML(strings.Join(parts, "<wbr>")) //nolint:gosec // each part is escaped
}

// prose formats text between single or double backticks as code.
func prose(text string) template.HTML {
	var out strings.Builder
	for text != "" {
		before, after, found := strings.Cut(text, "`")
		out.WriteString(template.HTMLEscapeString(before))
		if !found {
			break
		}
		quote := "`"
		if rest, double := strings.CutPrefix(after, "` "); double {
			quote, after = " ``", rest
		}
		inside, rest, closed := strings.Cut(after, quote)
		if !closed {
			out.WriteString(template.HTMLEscapeString(quote + after))
			break
		}
		out.WriteString("<code>" + template.HTMLEscapeString(inside) + "</code>")
		text = rest
	}
	return template.HTML(out.String()) //nolint:gosec // each part is escaped
}

// moment formats a time for users, and for machines.
func moment(at metav1.Time) template.HTML {
	utc := at.UTC()
	return template.HTML(`<time datetime="` + utc.Format(time.RFC3339) + `">` + utc.Format("2006-01-02 15:04:05 UTC") + `</time>`) //nolint:gosec // digits
}
