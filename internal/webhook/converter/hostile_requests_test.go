// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

const crontabs = "crontabs.example.com"

func v1Review(request string) string {
	return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":` + request + `}`
}

func conversionOf(objects string) string {
	return v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v2","objects":[` + objects + `]}`)
}

// fill repeats an element up to a size. %d in it is another number each time.
func fill(begin, element, end string) func(size int) string {
	return func(size int) string {
		var text strings.Builder
		text.WriteString(begin)
		for i := 0; i == 0 || text.Len()+len(element)+len(end) < size; i++ {
			if i > 0 {
				text.WriteByte(',')
			}
			text.WriteString(strings.ReplaceAll(element, "%d", strconv.Itoa(i)))
		}
		return text.String() + end
	}
}

// bomb is an annotation with much preserved data that is compressed: entries without a value, with an address.
func bomb(address string) string {
	var packed bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &packed)
	writer, _ := flate.NewWriter(encoder, flate.BestCompression)
	_, _ = io.WriteString(writer, fill(`{"format":3,"hidden":{`, `"`+address+`":0`, `}}`)(4<<20-1000))
	_, _ = writer.Close(), encoder.Close()
	return `{\"format\":3,\"deflate\":\"` + packed.String() + `\"}`
}

// contents are those of objects that take much memory for their size.
var contents = map[string]func(size int) string{
	"annotations":          fill(`"metadata":{"name":"a","annotations":{`, `"%d":""`, `}}`),
	"labels":               fill(`"metadata":{"labels":{`, `"%d":""`, `},"name":"a"}`),
	"elements":             fill(`"spec":{"l":[`, `{}`, `]}`),
	"elements with uid":    fill(`"metadata":{"name":"a","uid":"a"},"spec":{"l":[`, `{}`, `]}`),
	"no elements":          fill(`"spec":{"l":[`, `0`, `]}`),
	"preserved":            fill(`"metadata":{"name":"a","uid":"a"},"spec":{"l":[`, `{"a":"","p":""}`, `]}`),
	"entries":              fill(`"spec":{"m":{`, `"%d":{}`, `}}`),
	"index":                fill(`"spec":{"i":[`, `{"k":"%d"}`, `]}`),
	"YAML":                 fill(`"spec":{"s":"[`, `{}`, `]"}`),
	"YAML of lines":        fill(`"spec":{"s":"`, `- a\n`, `"}`),
	"JSON":                 fill(`"spec":{"j":"[`, `[]`, `]"}`),
	"JSON of texts":        fill(`"spec":{"j":"[`, `\"\"`, `]"}`),
	"cel":                  fill(`"spec":{"t":"`, ``, `"}`),
	"free":                 fill(`"spec":{"any":[`, `0`, `]}`),
	"depth":                func(size int) string { return `"spec":{"any":` + strings.Repeat("[", size) + `}` },
	"depth of a list":      func(size int) string { return `"spec":{"l":` + strings.Repeat(`[{"a":`, size/6) + `}` },
	"a long key":           func(size int) string { return `"spec":{"m":{"` + strings.Repeat(`k`, size) + `":{"a":"x"}}}` },
	"a key of escapes":     func(size int) string { return `"spec":{"m":{"` + strings.Repeat(`\u0001`, size/6) + `":{"a":"x"}}}` },
	"a text of escapes":    func(size int) string { return `"spec":{"s":"` + strings.Repeat(`\u0001`, size/6) + `"}` },
	"a long number":        func(size int) string { return `"spec":{"any":` + strings.Repeat("9", size) + `}` },
	"a twice":              fill(`"spec":{"m":{`, `"a":{}`, `}}`),
	"a long name":          func(size int) string { return `"metadata":{"name":"` + strings.Repeat("<", size) + `"},"spec":0` },
	"not the kind":         func(size int) string { return `"kind":"` + strings.Repeat(`\u0001`, size/6) + `"` },
	"a bomb":               exploding("/spec/l/%d/p"),
	"a bomb of members":    exploding("/%d"),
	"a bomb of inner ones": exploding("/spec/any/%d"),
	"a bomb of segments":   exploding("/%d" + strings.Repeat("/", 9000)),
	"many kinds of keys":   fill(`"spec":{"any":{`, `"k%d":{"a":[1,"\u00e4",null,true,{"b":1e10}]}`, `}}`),
}

func exploding(address string) func(size int) string {
	annotation := sync.OnceValue(func() string { return bomb(address) })
	return func(int) string {
		return `"metadata":{"name":"a","uid":"a","annotations":{"conversion-operator.io/v2.` + crontabs + `":"` + annotation() + `"}},"spec":{"any":{}}`
	}
}

// hostile is a kind of request, with a body of about a size.
type hostile struct {
	method, path string
	body         func(size int) string
}

// requests are hostile requests to all paths of a pod that serves a ruleset.
func requests(hash string) map[string]hostile {
	type body = func(size int) string
	object := func(content string) string { return `{"apiVersion":"example.com/v1","kind":"CronTab",` + content + `}` }
	around := func(begin string, content body, end string) body {
		return func(size int) string { return begin + content(size) + end }
	}
	repeat := func(text string, length int) body {
		return func(size int) string { return strings.Repeat(text, size/length) }
	}
	all := map[string]hostile{}
	conversion := func(name string, body body) {
		all["conversion: "+name] = hostile{http.MethodPost, webhook.ConvertPath + "/" + hash, body}
	}
	admission := func(name, begin string, content body, end string) {
		const review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`
		all["admission: "+name] = hostile{http.MethodPost, webhook.AdmitPath + "/" + hash, around(review+begin, content, end+`}}`)}
	}
	for name, content := range contents {
		whole := func(size int) string { return object(content(size)) }
		conversion(name, func(size int) string { return conversionOf(whole(size)) })
		admission(name, `"operation":"UPDATE","object":`, whole, ``)
		admission("deletion: "+name, `"operation":"DELETE","oldObject":`, whole, ``)
	}
	admission("dryRun", `"options":`, fill(`{"dryRun":[`, `""`, `]}`), ``)
	admission("userInfo", `"userInfo":`, fill(`{"groups":[`, `""`, `]}`), ``)
	admission("uid", `"uid":"`, repeat("<", 1), `"`)
	admission("members", ``, fill(``, `"%d":0`, ``), ``)
	small := fill(``, object(`"metadata":{"name":"a"}`), ``)
	conversion("many objects", func(size int) string { return conversionOf(small(size)) })
	conversion("empty objects", func(size int) string { return conversionOf(fill(``, `{}`, ``)(size)) })
	conversion("objects before", around(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"objects":[`, small, `],"uid":"u","desiredAPIVersion":"example.com/v2"}}`))
	conversion("a long uid", func(size int) string { return v1Review(`{"uid":"` + repeat("<", 1)(size) + `"}`) })
	conversion("a long version", func(size int) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"` + repeat(`\u0001`, 6)(size) + `","objects":[{}]}`)
	})
	conversion("a probe", func(size int) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"` + webhook.ProbeGroup + `/v2","objects":[` + fill(`{"apiVersion":"`+webhook.ProbeGroup+`/v1","kind":"`+webhook.ProbeKind+`","spec":[`, `""`, `]}`)(size) + `]}`)
	})
	conversion("no JSON", repeat("<", 1))
	conversion("spaces", repeat(" ", 1))
	conversion("members", fill(`{`, `"%d":0`, `}`))
	conversion("a member of escapes", around(`{"`, repeat(`\u0001`, 6), `":0}`))
	for _, path := range []string{webhook.ConvertPath + "/other", webhook.AdmitPath + "/other", webhook.RulesetsPath, webhook.FailuresPath, webhook.HealthPath, "/" + strings.Repeat("x", 3000)} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			all[fmt.Sprintf("%s %.20s", method, path)] = hostile{method, path, repeat("x", 1)}
		}
	}
	return all
}
