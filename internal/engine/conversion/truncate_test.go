// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// shorteningOf is converterOf for rules that may truncate objects.
func shorteningOf(t testing.TB, result compile.Result, with conversion.Truncating) *conversion.Converter {
	t.Helper()
	result.Ruleset.Truncating = &with
	return converterOf(t, result)
}

// markerOf returns the marker in an annotation, without its digest and token.
func markerOf(t testing.TB, object, annotation string) map[string]any {
	t.Helper()
	marker, isObject := decode(t, annotationOf(t, object, annotation))["omitted"].(map[string]any)
	if !isObject {
		t.Fatalf("%s has no marker in %.300s", annotation, object)
	}
	for _, name := range []string{"digest", "token"} {
		if text, isText := marker[name].(string); !isText || len(text) < 16 {
			t.Errorf("the marker has %s %q", name, marker[name])
		}
		delete(marker, name)
	}
	return marker
}

// annotationBytes returns the size that the API server limits.
func annotationBytes(t testing.TB, object string) (total int) {
	t.Helper()
	for name, text := range textsOf(t, object) {
		total += len(name) + len(text)
	}
	return total
}

// shortenedTo converts to a truncated form that the API server accepts.
func shortenedTo(t testing.TB, c *conversion.Converter, object, to string) (string, conversion.Outcome) {
	t.Helper()
	there, outcome, err := c.Answer(nil, []byte(object), to, nil)
	if err != nil {
		t.Fatalf("to %s: %v", to, err)
	}
	if outcome.Omitted == nil {
		t.Fatalf("to %s: the object is whole: %.300s", to, there)
	}
	if size := annotationBytes(t, string(there)); size > conversion.MaxAnnotations {
		t.Fatalf("to %s: the annotations take %d bytes", to, size)
	}
	return string(there), outcome
}

var secret = conversion.Truncating{Key: "a secret"}

// TestTruncated reads an object with more preserved data than fits, on either side, and writes it
// back.
func TestTruncated(t *testing.T) {
	const hubs, spokes = "a: {type: string}, big: {type: string}, list: {type: array, items: {type: object, properties: {x: {type: string}}}}, both: {type: string}",
		"c: {type: string}, huge: {type: string}, both: {type: string}"
	c := shorteningOf(t, between(t, spokes, hubs, ""), secret)
	for name, test := range map[string]struct {
		from, to, fields, back string
		live, preserved        string
	}{
		"hub":   {"v2", "v1", `"a":"1","big":"` + noise(500<<10) + `","both":"2"`, ".big", `"2"`, "/a"},
		"spoke": {"v1", "v2", `"c":"1","huge":"` + noise(500<<10) + `","both":"2"`, ".huge", `"2"`, "/c"},
	} {
		t.Run(name, func(t *testing.T) {
			object := named(test.from, "", test.fields)
			there, outcome := shortenedTo(t, c, object, test.to)
			annotation := conversion.AnnotationName("widgets.example.com", test.from)
			value := decode(t, annotationOf(t, there, annotation))
			marker := markerOf(t, there, annotation)
			size := fmt.Sprint(marker["bytes"])
			delete(marker, "bytes")
			expect.Equal(t, "marker", `map[count:1 fields:[/`+test.back[1:]+`]]`, fmt.Sprint(marker))
			expect.Equal(t, "preserved all the same", "map["+test.preserved+":1]", fmt.Sprint(value["hidden"]))
			expect.Equal(t, "live data", "2", decode(t, there)["both"])
			omitted := &conversion.Omitted{Version: test.from, At: test.to, Count: 1, Bytes: outcome.Omitted.Bytes, Fields: []string{test.back}}
			expect.Equal(t, "outcome", omitted, outcome.Omitted)
			if fmt.Sprint(outcome.Omitted.Bytes) != size || outcome.Omitted.Bytes <= conversion.MaxAnnotations {
				t.Errorf("bytes: %d in the outcome, %s in the marker", outcome.Omitted.Bytes, size)
			}

			_, err := c.Convert(nil, []byte(there), test.from)
			_ = wantError[*conversion.TruncatedError](t, "back", err)
			want := fmt.Sprintf("the object was truncated when it was read at %s, because the fields that only version %s has take %s, and all annotations together may take 256 KiB: write it at %s, without the annotation %s, or make %s smaller there",
				test.to, test.from, conversion.Kibibytes(outcome.Omitted.Bytes), test.from, annotation, test.back)
			expect.Equal(t, "back", want, err.Error())
			expect.Equal(t, "admission", want, fmt.Sprint(c.Admit([]byte(there), nil)))
		})
	}
}

// TestTruncatedThreeVersions truncates on the way through the hub: both versions share one limit,
// and only the version that the object was read at is refused on the way back.
func TestTruncatedThreeVersions(t *testing.T) {
	crd := widgets(t, map[string]string{"v1": "a: {type: string}, one: {type: string}", "v2": "b: {type: string}", "v3": "c: {type: string}"})
	c := shorteningOf(t, compile.Compile(crd, from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}, {version: v3}]}")), secret)
	large := noise(300 << 10)

	atHub := convert(t, c, named("v1", "", `"a":"`+large+`","one":"1"`), "v2")
	both := strings.TrimSuffix(atHub, "}") + `,"b":"` + large[:len(large)/2] + `x` + noise(200<<10) + `"}`
	there, outcome := shortenedTo(t, c, both, "v3")
	expect.Equal(t, fmt.Sprintf("number of values left out, one of each version, in %+v", outcome.Omitted), 2, outcome.Omitted.Count)
	markerOf(t, there, conversion.AnnotationName("widgets.example.com", "v1"))
	markerOf(t, there, conversion.AnnotationName("widgets.example.com", "v2"))

	direct, _ := shortenedTo(t, c, named("v1", "", `"a":"`+noise(600<<10)+`","one":"1"`), "v3")
	for _, to := range []string{"v1", "v2"} {
		for _, read := range []string{there, direct} {
			_, err := c.Convert(nil, []byte(read), to)
			_ = wantError[*conversion.TruncatedError](t, "from v3 to "+to, err)
		}
	}
}

// TestTruncatedMany has many values with long names.
func TestTruncatedMany(t *testing.T) {
	c := shorteningOf(t, between(t, "m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}",
		"m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}, z: {type: string}}}}", ""), secret)
	for length, count := range map[int]int{8: 6000, 3000: 200} {
		t.Run(fmt.Sprint("names of ", length), func(t *testing.T) {
			var fields []string
			for i := range count {
				fields = append(fields, fmt.Sprintf(`"%d%s":{"x":"1","z":%q}`, i, noiseOf(i, length), noiseOf(-i, 400)))
			}
			object := named("v2", "", `"m":{`+strings.Join(fields, ",")+`}`)
			there, outcome := shortenedTo(t, c, object, "v1")
			marker := markerOf(t, there, conversion.AnnotationName("widgets.example.com", "v2"))
			if listed := marker["fields"].([]any); len(listed) > conversion.MaxDropped || outcome.Omitted.Count < len(listed) {
				t.Errorf("got %d fields of %d", len(listed), outcome.Omitted.Count)
			}
		})
	}
}

// noiseOf returns different noise for each seed.
func noiseOf(seed, length int) string {
	random, text := rand.New(rand.NewPCG(uint64(seed), 7)), make([]byte, length)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"[random.IntN(64)]
	}
	return string(text)
}

// TestTruncatedCrowded has no space besides the annotations of others: one of those is omitted from
// the result.
func TestTruncatedCrowded(t *testing.T) {
	c := shorteningOf(t, between(t, "b: {type: string}", "a: {type: string}", ""), secret)
	object := strings.Replace(named("v2", "", `"a":"1"`), `"metadata":{`,
		`"metadata":{"annotations":{"small":"1","example.com/other":"`+strings.Repeat("x", conversion.MaxAnnotations-30)+`"},`, 1)
	there, outcome := shortenedTo(t, c, object, "v1")
	if annotationOf(t, there, "small") != "1" || strings.Contains(there, "xxxx") {
		t.Errorf("got %.300s", there)
	}
	expect.Equal(t, "left out", []string{`.metadata.annotations["example.com/other"]`}, outcome.Omitted.Fields)
	_ = wantError[*conversion.TooLargeError](t, "admission", c.Admit([]byte(object), nil))
}

// TestTruncatedAnnotation has a rule that creates an annotation.
func TestTruncatedAnnotation(t *testing.T) {
	c := shorteningOf(t, between(t, "b: {type: string}", "", `{move: {from: .b, to: '.metadata.annotations["b"]'}}`), secret)
	there, _ := shortenedTo(t, c, named("v1", "", `"b":"`+noise(300<<10)+`"`), "v2")
	_, err := c.Convert(nil, []byte(there), "v1")
	_ = wantError[*conversion.TruncatedError](t, "back", err)
}

// TestNotTruncated converts objects that fit to the same bytes as without truncating.
func TestNotTruncated(t *testing.T) {
	with := shorteningOf(t, between(t, "b: {type: string}", "a: {type: string}", ""), secret)
	without := converterOf(t, between(t, "b: {type: string}", "a: {type: string}", ""))
	for name, text := range map[string]string{"small": "1", "nearly full": noise(350 << 10), "compressible": strings.Repeat("text ", 400<<10)} {
		object := named("v2", "", `"a":"`+text+`"`)
		there := convert(t, with, object, "v1")
		wantBytes(t, without, object, "v1", there)
		wantBytes(t, with, there, "v2", object)
		if err := with.Admit([]byte(object), nil); err != nil {
			t.Errorf("%s: admission: %v", name, err)
		}
	}
}

// TestTruncatingIsAllowed checks that only rules which allow it truncate.
func TestTruncatingIsAllowed(t *testing.T) {
	result := between(t, "b: {type: string}", "a: {type: string}", "")
	object := named("v2", "", `"a":"`+noise(500<<10)+`"`)
	there, _ := shortenedTo(t, shorteningOf(t, result, secret), object, "v1")

	result.Ruleset.Truncating = nil
	for name, c := range map[string]*conversion.Converter{
		"refuses only": shorteningOf(t, result, conversion.Truncating{Key: secret.Key, RefuseOnly: true}),
		"no key":       shorteningOf(t, result, conversion.Truncating{}),
		"another key":  shorteningOf(t, result, conversion.Truncating{Key: "another"}),
	} {
		if _, err := c.Convert(nil, []byte(object), "v1"); name != "another key" {
			_ = wantError[*conversion.OverflowError](t, name+": there", err)
		}
		back, err := c.Convert(nil, []byte(there), "v2")
		refused := errors.As(err, new(*conversion.TruncatedError))
		expect.Equal(t, fmt.Sprintf("%s: back: that it is refused as truncated: %v", name, err), name == "refuses only", refused)
		// A marker without a valid token is unreadable text, which must not be destroyed.
		if err == nil && !strings.Contains(string(back), "omitted") {
			t.Errorf("%s: back: the marker is gone: %.300s", name, back)
		}
		_ = wantError[*conversion.TruncatedError](t, name+": admission", c.Admit([]byte(there), nil))
	}
	result.Ruleset.DropOverflow = true
	convert(t, shorteningOf(t, result, secret), object, "v1")
}

// TestForgedMarker has markers that users wrote: no conversion fails because of them, in any
// direction, and every write with them is refused.
func TestForgedMarker(t *testing.T) {
	c := shorteningOf(t, between(t, "b: {type: string}", "a: {type: string}", ""), secret)
	genuine, _ := shortenedTo(t, c, named("v2", "", `"a":"`+noise(500<<10)+`"`), "v1")
	for i, marker := range []string{
		`{"format":3,"omitted":{"count":1,"bytes":300000,"fields":["/a"],"token":"0123456789abcdef0123456789abcdef"}}`,
		`{"format":3,"omitted":{}}`, `{"format":3,"omitted":7,"rules":"","hidden":{"/a":"1"}}`, `{"format":3,"omitted":{"bytes":-1,"count":1000.0,"fields":[1,{}]}}`,
		annotationOf(t, genuine, conversion.AnnotationName("widgets.example.com", "v2")), // of a form at v1, at v2
	} {
		for _, owner := range []string{"v1", "v2", "v9"} {
			for from, to := range map[string]string{"v1": "v2", "v2": "v1"} {
				if from == "v1" && i == 4 {
					continue // the marker is genuine there
				}
				object := withAnnotation(conversion.AnnotationName("widgets.example.com", owner), from, marker, `"b":"1","a":"1"`)
				there := convert(t, c, object, to)
				expect.Contains(t, fmt.Sprintf("%s of %s at %s", marker, owner, from), there, "omitted")
				if i < 4 {
					convert(t, c, there, from)
				} // an object with a copied marker cannot be written at v1
				_ = wantError[*conversion.TruncatedError](t, fmt.Sprintf("%s of %s at %s: admission", marker, owner, from), c.Admit([]byte(object), nil))
			}
		}
	}
	other := withAnnotation("conversion-operator.io/v1.gadgets.example.com", "v2", `{"format":3,"omitted":{}}`, ``)
	expect.NoError(t, c.Admit([]byte(other), nil)) // it is another resource's
}

// TestTruncatingExcept checks that nothing is truncated at an excepted version.
func TestTruncatingExcept(t *testing.T) {
	c := shorteningOf(t, between(t, "b: {type: string}", "a: {type: string}", ""), conversion.Truncating{Key: secret.Key, Except: []string{"v2"}})
	shortenedTo(t, c, named("v2", "", `"a":"`+noise(500<<10)+`"`), "v1")
	_, err := c.Convert(nil, []byte(named("v1", "", `"b":"`+noise(500<<10)+`"`)), "v2")
	_ = wantError[*conversion.OverflowError](t, "at v2", err)
}

// FuzzTruncated checks that every object can be read at the other version within the API server's
// limit, and is either complete or refused on the way back.
func FuzzTruncated(f *testing.F) {
	c := shorteningOf(f, between(f, "b: {type: string}", "a: {type: string}, m: {type: object, additionalProperties: {type: string}}", ""), secret)
	f.Add(uint64(1), 10, 40000, 3000)
	f.Add(uint64(2), 3000, 120, 0)
	f.Add(uint64(3), 0, 0, 262100)
	f.Add(uint64(4), 1, 400000, 261000)
	f.Fuzz(func(t *testing.T, seed uint64, count, size, others int) {
		if count < 0 || size < 0 || others < 0 || others > conversion.MaxAnnotations-20 || count > 1<<14 || size > 1<<20 || count*size > 1<<20 {
			t.Skip()
		}
		fields := make([]string, count)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"%d":%q`, i, noiseOf(int(seed)+i, size))
		}
		object := strings.Replace(named("v2", "", `"a":"1","m":{`+strings.Join(fields, ",")+`}`), `"metadata":{`,
			`"metadata":{"annotations":{"o":"`+strings.Repeat(`x`, others)+`"},`, 1)
		there, outcome, err := c.Answer(nil, []byte(object), "v1", nil)
		if err != nil || annotationBytes(t, string(there)) > conversion.MaxAnnotations {
			t.Fatalf("there: %v, %d bytes", err, annotationBytes(t, string(there)))
		}
		back, err := c.Convert(nil, there, "v2")
		switch refused := errors.As(err, new(*conversion.TruncatedError)); {
		case refused != (outcome.Omitted != nil):
			t.Fatalf("back: %v, left out: %+v", err, outcome.Omitted)
		case !refused && !cmp.Equal(decode(t, object), decode(t, string(back))):
			t.Fatal("back: it is another object")
		}
		if err := c.Admit([]byte(object), nil); (err == nil) != (outcome.Omitted == nil) {
			t.Fatalf("admission: %v, left out: %+v", err, outcome.Omitted)
		}
	})
}
