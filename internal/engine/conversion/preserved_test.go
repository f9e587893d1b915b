// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// ofV1 is the annotation for preserved data of v1.
const ofV1 = "conversion-operator.io/v1.widgets.example.com"

// TestPreserved converts objects with preserved data of v1 from v2 to v1.
func TestPreserved(t *testing.T) {
	const v1 = "a: {type: string}, o: {type: object, properties: {x: {type: string}, own: {type: string}}}, s: {type: object, properties: {f: {type: string}}}"
	const v2 = "b: {type: string}, o: {type: object, properties: {x: {type: string}}}, g: {type: string}"
	c := converterOf(t, between(t, v1, v2, `{format: {from: .a, template: "<{b}>", to: {b: .b}}}, {move: {from: .s.f, to: .g}}`))
	toSpoke{
		"restored":                       {annotated("v2", `v1 {"/a":"text","/o/own":"1"}`, `"o":{}`), widget("v1", `"o":{"own":"1"},"a":"text"`)},
		"an edit wins":                   {annotated("v2", `v1 {"/a":"text"}`, `"b":"1"`), widget("v1", `"a":"<1>"`)},
		"an edit of an image wins":       {annotated("v2", `v1 {"/a":"<\u0031>","@/a":["/b"]}`, `"b":"2"`), widget("v1", `"a":"<2>"`)},
		"an image that was removed":      {annotated("v2", `v1 {"/a":"<1>","@/a":["/b"]}`, ``), widget("v1", ``)},
		"the object is gone":             {annotated("v2", `v1 {"/o/own":"1"}`, ``), widget("v1", ``)},
		"live data is there":             {annotated("v2", `v1 {"/s":{}}`, `"g":"1"`), widget("v1", `"s":{"f":"1"}`)},
		"live data of both versions":     {annotated("v2", `v1 {"/o/x":"1"}`, `"o":{"x":"2"}`), widget("v1", `"o":{"x":"2"}`)},
		"of no field is carried on":      {annotated("v2", `v1 {"/kind":"x","/metadata/name":"x"}`, `"o":{}`), annotated("v1", `v1 {"/kind":"x","/metadata/name":"x"}`, `"o":{}`)},
		"no JSON stays":                  {annotated("v2", `v1 {"/o/own":`, `"o":{}`), annotated("v1", `v1 {"/o/own":`, `"o":{}`)},
		"no object stays":                {annotated("v2", `v1 []`, `"o":{}`), annotated("v1", `v1 []`, `"o":{}`)},
		"a later format stays":           {withAnnotation(ofV1, "v2", `{"format":4,"values":{"/o/own":"1"}}`, `"o":{}`), withAnnotation(ofV1, "v1", `{"format":4,"values":{"/o/own":"1"}}`, `"o":{}`)},
		"of its own version is carried":  {annotated("v2", `v2 {"/b":"1"}`, ``), annotated("v1", `v2 {"/b":"1"}`, ``)},
		"of its own version, superseded": {annotated("v2", `v2 {"/b":"1"}`, `"b":"2"`), widget("v1", `"a":"<2>"`)},
		"of another version":             {annotated("v2", `v9 {"/b":"1"}`, ``), annotated("v1", `v9 {"/b":"1"}`, ``)},
		"no metadata":                    {`{"apiVersion":"example.com/v2","kind":"Widget","g":"1"}`, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{},"s":{"f":"1"}}`},
		"metadata that is null":          {`{"apiVersion":"example.com/v2","kind":"Widget","metadata":null}`, widget("v1", ``)},
		"of another resource":            {withAnnotation("conversion-operator.io/v1.gadgets.example.com", "v2", `{"format":3,"values":{"/a":"1"}}`, ``), withAnnotation("conversion-operator.io/v1.gadgets.example.com", "v1", `{"format":3,"values":{"/a":"1"}}`, ``)},
	}.check(t, c)
}

// TestAnnotationName checks that a name which is too long for an annotation ends with its hash.
func TestAnnotationName(t *testing.T) {
	for resource, want := range map[string]string{
		"widgets.example.com": "conversion-operator.io/v1.widgets.example.com",
		"a234567890123456789012345678901234567890.example.com.of.some.more": "conversion-operator.io/v1.a234567890123456789012345678901234567890.ex-cb3720dd7dae46e8",
	} {
		expect.Equal(t, "annotation of "+resource, want, conversion.AnnotationName(resource, "v1"))
	}
}

// withAnnotation encodes an object with one annotation.
func withAnnotation(annotation, version, text, fields string) string {
	return strings.Replace(widget(version, fields), `"metadata":{}`, `"metadata":{"annotations":{"`+annotation+`":`+quoted(text)+`}}`, 1)
}

// TestPreservedUnknown has text that this version cannot read: it stays in both directions.
func TestPreservedUnknown(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}, own: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}"))
	for name, text := range map[string]string{
		"a name twice":              `{"format":3,"values":{"/own":"1","/own":"2"}}`,
		"fields that are a list":    `{"format":3,"values":["/own"]}`,
		"absences that are a list":  `{"format":3,"absent":["/own"]}`,
		"an absence of no value":    `{"format":3,"absent":{"/own":7}}`,
		"no base64":                 `{"format":3,"deflate":"?"}`,
		"no deflate":                `{"format":3,"deflate":"AAAA"}`,
		"deflate that is no text":   `{"format":3,"deflate":7}`,
		"deflate of no object":      deflated(`[]`),
		"deflate of a later format": deflated(`{"format":4,"values":{"/own":"1"}}`),
		"deflate twice":             deflated(deflated(`{"format":3,"values":{"/own":"1"}}`)),
		"a bomb":                    deflated(`{"format":3,"values":{"/own":"` + strings.Repeat("a", preserve.MaxSize) + `"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			for to, from := range map[string]string{"v1": "v2", "v2": "v1"} {
				wantBytes(t, c, withAnnotation(ofV1, from, text, ""), to, withAnnotation(ofV1, to, text, ""))
			}
		})
	}
}

// TestMisfits has values that do not fit: they remain in the annotation, and other preserved values
// come back.
func TestMisfits(t *testing.T) {
	const other = "hp: {type: string}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}"
	c := converterOf(t, between(t, other,
		"h: {type: string}, p: {type: string}, l: {type: array, items: {type: object, properties: {x: {type: string}, s: {type: string}, n: {type: integer}}}}, o: {type: object, properties: {x: {type: string}}}",
		`{format: {from: .hp, template: "{h}:{p}", to: {h: .h, p: .p}}}`))
	for name, test := range map[string]struct{ object, want string }{
		"one member of an object": {annotated("v1", `v2 {"/o":{"x":"1","gone":"2"}}`, ``), annotated("v2", `v2 {"/o/gone":"2"}`, `"o":{"x":"1"}`)},
		"all of it":               {annotated("v1", `v2 {"/o":7}`, ``), annotated("v2", `v2 {"/o":7}`, ``)},
	} {
		t.Run(name, func(t *testing.T) {
			wantConverted(t, c, test.object, "v2", test.want)
		})
	}
}

// TestUnreadable preserves a value in an annotation that has text of another format.
func TestUnreadable(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}, own: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}"))
	there := convert(t, c, withAnnotation(ofV1, "v1", `not "JSON"`, `"own":"1"`), "v2")
	expect.Contains(t, "there", annotationOf(t, there, ofV1), `"hidden":{"/own":"1"}`, `"unreadable":"not \"JSON\""`)
	back := convert(t, c, there, "v1")
	expect.Equal(t, "back", withAnnotation(ofV1, "v1", `not "JSON"`, `"own":"1"`), back)
	wantBytes(t, c, back, "v2", there)
}

// TestOverflow has more preserved data than annotations may hold, even compressed.
func TestOverflow(t *testing.T) {
	crd := widgets(t, map[string]string{"v1": "a: {type: string}, b: {type: string}, c: {type: string}", "v2": "x: {type: string}"})
	converting := func(overflow v1alpha1.OverflowAction) *conversion.Converter {
		rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}]}")
		rules.Overflow = overflow
		return converterOf(t, compile.Compile(crd, rules))
	}
	large, larger := noise(250<<10), noise(300<<10)
	object := named("v1", "", `"a":"`+large+`","b":"`+larger+`","c":"1"`)
	_, err := converting(v1alpha1.OverflowFail).Convert(nil, []byte(object), "v2")
	var overflow *conversion.OverflowError
	if !errors.As(err, &overflow) || overflow.Version != "v1" || overflow.Preserved <= conversion.MaxAnnotations || overflow.Preserved >= len(object) || overflow.Others != 0 {
		t.Fatalf("got %v, want that v1 has more than fits, compressed", err)
	}
	want := fmt.Sprintf("the fields that only version v1 has take %d bytes, and all annotations together may take 262144: truncate the object's annotations, of which the others take 0, or those fields, or set overflow to Drop in the ConversionPolicy", overflow.Preserved)
	expect.Equal(t, "error", want, err.Error())

	c := converting(v1alpha1.OverflowDrop)
	there, outcome, err := c.Answer(nil, []byte(object), "v2", nil)
	expect.NoError(t, err)
	text := annotationOf(t, string(there), ofV1)
	preserved := decode(t, `{"format":3,"hidden":{"/a":"`+large+`","/c":"1"},"dropped":["/b"]}`)
	if got := withoutFingerprints(inflated(t, text)); !reflect.DeepEqual(preserved, got) {
		t.Errorf("there: got %.200s, want %.200s", generate.Plain(got), generate.Plain(preserved))
	}
	expect.Equal(t, "outcome", conversion.Outcome{Read: len(object), From: "v1", PreservedBytes: len(text), DroppedValues: 1}, outcome)
	wantBytes(t, c, string(there), "v1", named("v1", "", `"a":"`+large+`","c":"1"`))

	crowded := strings.Replace(object, `"metadata":{`, `"metadata":{"annotations":{"other":"`+strings.Repeat("x", conversion.MaxAnnotations-50)+`"},`, 1)
	_, err = c.Convert(nil, []byte(crowded), "v2")
	expect.Contains(t, "no room at all", fmt.Sprint(err), "of which the others take 262099")
}

// noise returns text of a length that compresses to no less than half of it.
func noise(length int) string {
	random, text := rand.New(rand.NewPCG(1, 2)), make([]byte, length/2)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	return hex.EncodeToString(text)
}

// TestCompressed compresses repetitive text that is larger than annotations may be, and no short
// text.
func TestCompressed(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}", "b: {type: string}", ""))
	object := named("v1", "", `"a":"`+strings.Repeat(`0123456789 \u00e4\n`, 1<<16)+`"`)
	there := convert(t, c, object, "v2")
	text := annotationOf(t, there, ofV1)
	if len(text) > conversion.MaxAnnotations || !strings.HasPrefix(text, `{"format":3,"deflate":"`) {
		t.Errorf("got %d bytes, %.80s", len(text), text)
	}
	wantBytes(t, c, there, "v1", object)

	short := strings.Repeat("a", 8<<10)
	wantBytes(t, c, named("v1", "", `"a":"`+short+`"`), "v2", named("v2", `v1 {"/a":"`+short+`"}`, ""))
}

// textsOf returns the annotations of an object.
func textsOf(t testing.TB, object string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name, text := range annotationsOf(decode(t, object)) {
		texts[name], _ = text.(string)
	}
	return texts
}

// annotationOf returns the text of an annotation.
func annotationOf(t testing.TB, object, name string) string {
	t.Helper()
	text, isText := annotationsOf(decode(t, object))[name].(string)
	if !isText {
		t.Fatalf("there is no annotation %s in %.400s", name, object)
	}
	return text
}

// deflated compresses the value of an annotation.
func deflated(text string) string {
	var packed bytes.Buffer
	writer, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	_, _ = writer.Write([]byte(text)) // a buffer accepts all bytes
	_ = writer.Close()
	return `{"format":3,"deflate":"` + base64.StdEncoding.EncodeToString(packed.Bytes()) + `"}`
}

// inflated returns the decoded value of an annotation, decompressed. It returns the text if that is
// not an object.
func inflated(t testing.TB, text string) any {
	t.Helper()
	value, err := decodeAny([]byte(text))
	object, isObject := value.(map[string]any)
	if err != nil || !isObject {
		return text
	}
	packed, isPacked := object["deflate"].(string)
	if !isPacked {
		return object
	}
	unpacked, err := io.ReadAll(io.LimitReader(flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed))), preserve.MaxSize+1))
	if err != nil || len(unpacked) > preserve.MaxSize {
		return text
	}
	return inflated(t, string(unpacked))
}

// withoutFingerprints returns decoded preserved data without what identifies the rules: it depends on all of them.
func withoutFingerprints(preserved any) any {
	data, _ := preserved.(map[string]any)
	for of := data; of != nil; of, _ = of["older"].(map[string]any) {
		delete(of, "rules")
	}
	return preserved
}

// valuesIn returns the values of decoded preserved data, by their pointers.
func valuesIn(preserved map[string]any) map[string]any {
	values := map[string]any{}
	for ; preserved != nil; preserved, _ = preserved["older"].(map[string]any) {
		for _, name := range []string{"values", "values", "hidden"} {
			of, _ := preserved[name].(map[string]any)
			for pointer, value := range of {
				values[withIndex(pointer)] = value
			}
		}
	}
	return values
}
