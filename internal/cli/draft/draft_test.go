// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// widgets returns a CustomResourceDefinition. Each version has the properties of .spec, as YAML in flow style.
func widgets(t testing.TB, v1, v2 string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.Spec.Group, crd.Spec.Scope = "widgets.example.com", "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names.Kind, crd.Spec.Names.Plural = "Widget", "widgets"
	for i, properties := range []string{v1, v2} {
		schema := &apiextensionsv1.JSONSchemaProps{}
		expect.NoError(t, yaml.UnmarshalStrict([]byte("{type: object, properties: {spec: {type: object, properties: {"+properties+"}}}}"), schema))
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: fmt.Sprintf("v%d", i+1), Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
		})
	}
	return crd
}

func rulesOf(t testing.TB, texts ...string) *v1alpha1.DeclarativeConverter {
	t.Helper()
	spoke := v1alpha1.Spoke{Version: "v1"}
	for _, text := range texts {
		rule := v1alpha1.Rule{}
		expect.NoError(t, yaml.UnmarshalStrict([]byte(text), &rule))
		spoke.Rules = append(spoke.Rules, rule)
	}
	return &v1alpha1.DeclarativeConverter{Hub: "v2", Spokes: []v1alpha1.Spoke{spoke}}
}

// textsOf returns the rules of a draft, as a policy has them.
func textsOf(draft *Draft) []string {
	texts := []string{}
	for _, rule := range draft.Rules {
		texts = append(texts, flow(rule.Rule))
	}
	return texts
}

// pairOf returns an object that was read at both versions, with the members of its spec.
func pairOf(spoke, hub string) Pair {
	const object = `{"apiVersion": "example.com/%s", "kind": "Widget", "metadata": {"name": "a"}, "spec": {%s}}`
	return Pair{fmt.Appendf(nil, object, "v1", spoke), fmt.Appendf(nil, object, "v2", hub)}
}

func make2(t *testing.T, input Input) *Draft {
	t.Helper()
	input.Spoke, input.Hub = "v1", "v2"
	draft, err := Make(input)
	expect.NoError(t, err)
	result := compile.Compile(input.CRD, draft.Policy.Spec.Converter.Declarative)
	expect.NoError(t, result.Errors.ToAggregate())
	return draft
}

// kind is a change of a schema, and the rules for it.
type kind struct {
	V1, V2        string
	Rules, AsGood []v1alpha1.Rule
	Unguessed     bool
}

func (k *kind) converter() *v1alpha1.DeclarativeConverter {
	return &v1alpha1.DeclarativeConverter{Hub: "v2", Spokes: []v1alpha1.Spoke{{Version: "v1", Rules: k.Rules}}}
}

// flows returns rules, as a policy has them, sorted.
func flows(rules []v1alpha1.Rule) (texts []string) {
	for _, rule := range rules {
		texts = append(texts, flow(rule))
	}
	slices.Sort(texts)
	return texts
}

// TestKinds drafts a rule of each kind. Probing finds all, so do objects at both versions, and the schemas alone find
// no wrong one.
func TestKinds(t *testing.T) {
	for name, test := range *expect.YAML[map[string]kind](t, "testdata/kinds.yaml") {
		t.Run(name, func(t *testing.T) {
			s := &sample{crd: widgets(t, test.V1, test.V2), policy: &v1alpha1.ConversionPolicy{}}
			s.policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: test.converter()}
			convert, want := engine(t, s.crd, test.converter()), flows(test.Rules)
			probed := make2(t, Input{CRD: s.crd, Convert: convert})
			expect.Equal(t, "rules by probing", want, slices.Sorted(slices.Values(textsOf(probed))))
			open := len(probed.Differences) + len(probed.Ambiguous) + len(probed.Probe.Problems)
			expect.Equal(t, fmt.Sprintf("what is open by probing, of %+v", probed), 0, open)
			// Another object of a pair may have had the value of a default; lists with one element look like wrapped values.
			if name != "default" && name != "list in text" {
				paired := make2(t, Input{CRD: s.crd, Pairs: pairsOf(t, s, convert)})
				expect.Equal(t, "rules from pairs", want, slices.Sorted(slices.Values(textsOf(paired))))
			}
			guessed := make2(t, Input{CRD: s.crd})
			for _, rule := range textsOf(guessed) {
				if !slices.Contains(slices.Concat(want, flows(test.AsGood)), rule) {
					t.Errorf("by the schemas alone, there is the wrong rule %s", rule)
				}
			}
			if test.Unguessed != (len(guessed.Rules) < len(want)) {
				t.Errorf("by the schemas alone, there are the rules %s: %+v", textsOf(guessed), guessed.Ambiguous)
			}
		})
	}
}

// TestRivals: of several fields that are as likely, none gets a rule.
func TestRivals(t *testing.T) {
	crd := widgets(t, `timeout: {type: string}`, `readTimeout: {type: string}, writeTimeout: {type: string}`)
	guessed := make2(t, Input{CRD: crd})
	if len(guessed.Rules) > 0 || len(guessed.Ambiguous) == 0 || !guessed.IsAmbiguous() {
		t.Errorf("the draft is %+v", guessed)
	}
	pair := pairOf(`"timeout": "90s"`, `"readTimeout": "90s", "writeTimeout": "90s"`)
	observed := make2(t, Input{CRD: crd, Pairs: []Pair{pair}})
	if len(observed.Rules) > 0 || len(observed.Ambiguous) == 0 {
		t.Errorf("the draft is %+v", observed)
	}
	other := pairOf(`"timeout": "5s"`, `"readTimeout": "90s", "writeTimeout": "5s"`)
	observed = make2(t, Input{CRD: crd, Pairs: []Pair{pair, other}})
	expect.Equal(t, "rules", []string{"move: {from: .spec.timeout, to: .spec.writeTimeout}"}, textsOf(observed))
}

// TestUnlike: words that say the opposite, and words that say little in other names or objects, are no likeness.
func TestUnlike(t *testing.T) {
	for v1, v2 := range map[string]string{
		`templateRef: {type: object, properties: {name: {type: string}}}`:                   `warmPoolRef: {type: object, properties: {name: {type: string}}}`,
		`minReadyTimeoutSeconds: {type: integer}`:                                           `maxReadyTimeoutSeconds: {type: integer}`,
		`volume: {type: object, properties: {name: {type: string}, size: {type: integer}}}`: `owner: {type: object, properties: {name: {type: string}, team: {type: array, items: {type: string}}}}`,
	} {
		guessed := make2(t, Input{CRD: widgets(t, v1, v2)})
		expect.Equal(t, "rules from "+v1, []string{}, textsOf(guessed))
		expect.Equal(t, "something is open", true, guessed.IsAmbiguous())
	}
}

// TestHints: a hint decides between rivals, unless objects refute it.
func TestHints(t *testing.T) {
	crd := widgets(t, `timeout: {type: string}, net: {type: object, properties: {a: {type: string}}}`,
		`readTimeout: {type: string}, writeTimeout: {type: string}, mesh: {type: object, properties: {a: {type: string}, b: {type: string}}}`)
	hints := [][2]string{{".spec.timeout", ".spec.readTimeout"}, {".spec.net", ".spec.mesh"}}
	want := []string{"move: {from: .spec.net, to: .spec.mesh}", "move: {from: .spec.timeout, to: .spec.readTimeout}"}
	expect.Equal(t, "rules", want, textsOf(make2(t, Input{CRD: crd, Hints: hints})))
	refuted := make2(t, Input{CRD: crd, Hints: hints, Pairs: []Pair{pairOf(`"timeout": "90s"`, `"readTimeout": "5s", "writeTimeout": "90s"`)}})
	want[1] = "move: {from: .spec.timeout, to: .spec.writeTimeout}"
	expect.Equal(t, "rules", want, textsOf(refuted))
	expect.Equal(t, "the draft is ambiguous", true, refuted.IsAmbiguous())
	for _, hint := range [][2]string{{".spec.timeout", ".spec.none"}, {".spec.timeout", ".spec.mesh"}} {
		_, err := Make(Input{CRD: crd, Spoke: "v1", Hub: "v2", Hints: [][2]string{hint}})
		expect.Contains(t, "the error for "+hint[1], fmt.Sprint(err), "hint")
	}
}

// TestRefuted: pairs refute a rule that the schemas suggest.
func TestRefuted(t *testing.T) {
	crd := widgets(t, `imageName: {type: string, description: "the image that the job runs"}`, `imageRef: {type: string, description: "the image that the job runs"}`)
	draft := make2(t, Input{CRD: crd, Pairs: []Pair{pairOf(`"imageName": "alpha"`, `"imageRef": "beta"`)}})
	expect.Equal(t, "rules", "[]", fmt.Sprint(textsOf(draft)))
}

// TestMostlyRight: one pair of three does not refute a rule, unless another rule explains all three. The draft says how
// many pairs it reproduces, and which rules no pair confirms.
func TestMostlyRight(t *testing.T) {
	crd := widgets(t, `ttl: {type: string}, imageName: {type: string, description: "the image that the job runs"}`,
		`ttlSeconds: {type: integer}, other: {type: integer}, imageRef: {type: string, description: "the image that the job runs"}`)
	pair := func(ttl, hub string) Pair { return pairOf(`"ttl": "`+ttl+`"`, hub) }
	rules := []string{"move: {from: .spec.imageName, to: .spec.imageRef}", "cast: {from: .spec.ttl, to: .spec.ttlSeconds, as: Seconds}"}
	draft := make2(t, Input{CRD: crd, Pairs: []Pair{pair("90s", `"ttlSeconds": 90`), pair("5s", `"ttlSeconds": 5`), pair("7s", `"ttlSeconds": 8`)}})
	expect.Equal(t, "rules", rules, textsOf(draft))
	expect.Equal(t, "pairs, reproduced, differences, not confirmed", []int{3, 2, 2, 1}, []int{draft.Pairs, draft.Reproduced, len(draft.Differences), draft.Unconfirmed()})
	for i, want := range []string{"NOT CONFIRMED: no pair had a value, guessed from the schemas (", "Confirmed by 2 pairs with 2 different values"} {
		expect.Contains(t, "evidence", draft.Rules[i].evidence("pair"), want)
	}

	rules[1] = "cast: {from: .spec.ttl, to: .spec.other, as: Seconds}"
	draft = make2(t, Input{CRD: crd, Pairs: []Pair{
		pair("90s", `"ttlSeconds": 90, "other": 90`), pair("5s", `"ttlSeconds": 6, "other": 5`), pair("7s", `"ttlSeconds": 7, "other": 7`),
	}})
	expect.Equal(t, "rules", rules, textsOf(draft))
}

// TestPairsWithoutRules: values that nothing gives are no success.
func TestPairsWithoutRules(t *testing.T) {
	crd := widgets(t, `one: {type: string}`, `two: {type: string}`)
	draft := make2(t, Input{CRD: crd, Pairs: []Pair{pairOf(`"one": "x"`, `"two": "y"`)}})
	expect.Equal(t, "rules and reproduced pairs", []int{0, 0}, []int{len(draft.Rules), draft.Reproduced})
	expect.Equal(t, "something is open", true, draft.IsAmbiguous())
}

// TestPairs: a draft from pairs has the rules that are right for most pairs, counts the pairs of which it gives an object, and
// says what it does not give.
func TestPairs(t *testing.T) {
	modes := `mode: {type: string, enum: [Running, Suspended], default: Running}`
	named := `list: {type: array, items: {type: object, properties: {one: {type: object, properties: {id: {type: string}}}, two: {type: object, properties: {id: {type: string}}}}}}`
	for name, test := range map[string]struct {
		v1, v2           string
		pairs            []Pair
		rules, ambiguous []string
		differ, kept     []string
		reproduced       int
	}{
		// A zero is a value where the default of the schema is another one.
		"a zero in place of a default": {
			v1: `replicas: {type: integer, default: 1}`, v2: modes,
			pairs:  []Pair{pairOf(`"replicas": 0`, `"mode": "Suspended"`), pairOf(`"replicas": 0`, `"mode": "Suspended"`)},
			differ: []string{"v1 .spec.replicas", "v2 .spec.mode"},
		},
		"false in a field of one version": {
			v1: `disableDevices: {type: boolean}`, v2: `devices: {type: object, properties: {enabled: {type: boolean}}}`,
			pairs:  []Pair{pairOf(`"disableDevices": true`, `"devices": {"enabled": false}`)},
			differ: []string{"v1 .spec.disableDevices", "v2 .spec.devices.enabled"},
		},
		// API servers fill it in when they read an object.
		"a default": {
			v1: `image: {type: string}, b: {type: string}`, v2: `image: {type: string}, ` + modes,
			pairs: []Pair{pairOf(`"image": "a", "b": "x"`, `"image": "a", "mode": "Running"`)}, reproduced: 1, kept: []string{"v1 .spec.b", "v2 .spec.mode"},
		},
		"a default in an object that is not there": {
			v1: `image: {type: string}, b: {type: string}`, v2: `image: {type: string}, run: {type: object, properties: {` + modes + `}}`,
			pairs:  []Pair{pairOf(`"image": "a", "b": "x"`, `"image": "a", "run": {"mode": "Running"}`)},
			differ: []string{"v1 .spec.b", "v2 .spec.run.mode"},
		},
		// The value may be preserved, and is no default of the converter.
		"the same value each time": {
			v1: `a: {type: string}, b: {type: string}`, v2: `a: {type: string}, node: {type: string}`,
			pairs:  []Pair{pairOf(`"a": "1", "b": "x"`, `"a": "1", "node": "n"`), pairOf(`"a": "2", "b": "y"`, `"a": "2", "node": "n"`)},
			differ: []string{"v1 .spec.b", "v2 .spec.node"},
		},
		// Back in v1, the rule gives each element a name in the wrong object.
		"a rule that is right for some elements": {
			v1: named, v2: `list: {type: array, items: {type: object, properties: {id: {type: string}}}}`,
			pairs: []Pair{
				pairOf(`"list": [{"one": {"id": "a"}}, {"two": {"id": "b"}}]`, `"list": [{"id": "a"}, {"id": "b"}]`),
				pairOf(`"list": [{"one": {"id": "c"}}, {"two": {"id": "d"}}]`, `"list": [{"id": "c"}, {"id": "d"}]`),
				pairOf(`"list": [{"one": {"id": "e"}}]`, `"list": [{"id": "e"}]`),
			},
			ambiguous: []string{"v1 .spec.list[*].one.id: a rule is right for 1 pair and wrong for 2, where .spec.list[*].id is \"d\", not nothing: move of .spec.list[*].one.id to .spec.list[*].id"},
			differ:    []string{"v1 .spec.list[*].one.id", "v1 .spec.list[*].two.id", "v2 .spec.list[*].id"},
		},
		"a rule that one of two pairs refutes": {
			v1: `policy: {type: string}`, v2: `tuning: {type: object, properties: {policy: {type: string}}}`,
			pairs:      []Pair{pairOf(`"policy": "annotation"`, `"tuning": {"policy": "annotation"}`), pairOf(`"policy": "highBurst"`, ``)},
			ambiguous:  []string{`v1 .spec.policy: a rule is right for 1 pair and wrong for 1, where .spec.tuning.policy is nothing, not "highBurst": move of .spec.policy to .spec.tuning.policy`},
			differ:     []string{"v1 .spec.policy", "v2 .spec.tuning.policy"},
			reproduced: 1,
		},
		// A client edited the list after it was converted.
		"other values in one pair": {
			v1: `handle: {type: string}`, v2: `handle: {type: string}`,
			pairs:  slices.Repeat([]Pair{pairOf(`"handle": "s1"`, `"handle": "s1"`), pairOf(`"handle": "new"`, `"handle": "s1"`)}, 2),
			differ: []string{"v1 .spec.handle", "v2 .spec.handle"}, reproduced: 2,
		},
		"whole numbers": {
			v1: `days: {type: string}`, v2: `days: {type: number}`,
			pairs: []Pair{pairOf(`"days": "30"`, `"days": 30`)},
			rules: []string{"cast: {from: .spec.days, to: .spec.days, as: Number}"}, reproduced: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			draft := make2(t, Input{CRD: widgets(t, test.v1, test.v2), Pairs: test.pairs})
			var ambiguous, differ, preserved []string
			for _, a := range draft.Ambiguous {
				ambiguous = append(ambiguous, a.String())
			}
			for _, d := range draft.Differences {
				differ = append(differ, d.To+" "+d.Path)
			}
			for _, p := range draft.Preserved {
				preserved = append(preserved, p.String())
			}
			expect.Equal(t, "rules", append([]string{}, test.rules...), textsOf(draft))
			expect.Equal(t, "ambiguous fields", test.ambiguous, ambiguous)
			expect.Equal(t, "fields that differ", test.differ, differ)
			expect.Equal(t, "preserved fields", test.kept, preserved)
			expect.Equal(t, "reproduced pairs", test.reproduced, draft.Reproduced)
			expect.Equal(t, "something is open", test.reproduced < len(test.pairs), draft.IsAmbiguous())
		})
	}
}

// TestUnpaired: fields are open if each version has some that the other one lacks, and no object shows what becomes of them.
func TestUnpaired(t *testing.T) {
	for name, test := range map[string]struct {
		v1, v2    string
		pairs     []Pair
		ambiguous []string
		unpaired  []string
		preserved []string
	}{
		"in one version": {v1: `a: {type: string}, b: {type: string}`, v2: `a: {type: string}`, preserved: []string{"v1 .spec.b"}},
		"in both versions": {
			v1: `replicas: {type: integer}, a: {type: string}`, v2: `operatingMode: {type: string}, a: {type: string}`,
			unpaired: []string{"v1 .spec.replicas: v2 has others there: .spec.operatingMode", "v2 .spec.operatingMode: v1 has others there: .spec.replicas"},
		},
		"in both versions, and in a pair": {
			v1: `replicas: {type: integer}, a: {type: string}`, v2: `operatingMode: {type: string}, a: {type: string}`,
			pairs:     []Pair{pairOf(`"a": "x", "replicas": 2`, `"a": "x"`), pairOf(`"a": "x"`, `"a": "x", "operatingMode": "y"`)},
			preserved: []string{"v1 .spec.replicas", "v2 .spec.operatingMode"},
		},
		"with another type": {
			v1: `gates: {type: object, properties: {a: {type: boolean}}}`, v2: `gates: {type: array, items: {type: object, properties: {name: {type: string}}}}`,
			ambiguous: []string{"v1 .spec.gates: v2 has it with another type, and the schemas show no rule", "v2 .spec.gates: v1 has it with another type, and the schemas show no rule"},
		},
		// The only question about the list is about the list itself.
		"a list with a rival": {
			v1:        `supportedAddons: {type: array, items: {type: object, properties: {a: {type: string}}}}`,
			v2:        `defaultAddons: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}}}`,
			ambiguous: []string{"v1 .spec.supportedAddons", "v2 .spec.defaultAddons"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			draft := make2(t, Input{CRD: widgets(t, test.v1, test.v2), Pairs: test.pairs})
			var unpaired, preserved []string
			for _, a := range draft.Unpaired {
				unpaired = append(unpaired, a.String())
			}
			for _, p := range draft.Preserved {
				preserved = append(preserved, p.String())
			}
			expect.Equal(t, "rules", 0, len(draft.Rules))
			expect.Equal(t, "ambiguous fields", len(test.ambiguous), len(draft.Ambiguous))
			for i := range min(len(draft.Ambiguous), len(test.ambiguous)) {
				expect.Contains(t, "the ambiguous field", draft.Ambiguous[i].String(), test.ambiguous[i])
			}
			expect.Equal(t, "unpaired fields", test.unpaired, unpaired)
			expect.Equal(t, "preserved fields", test.preserved, preserved)
			expect.Equal(t, "something is open", len(test.ambiguous)+len(test.unpaired) > 0, draft.IsAmbiguous())
		})
	}
}

// TestConverters: a converter that is not to be relied on is noticed.
func TestConverters(t *testing.T) {
	crd := widgets(t, `image: {type: string}`, `container: {type: object, properties: {image: {type: string}}}`)
	right := engine(t, crd, rulesOf(t, `move: {from: .spec.image, to: .spec.container.image}`))
	calls := 0
	// changed returns a converter that answers with other objects.
	changed := func(change func(answer string) string) Convert {
		return func(to string, objects [][]byte) ([][]byte, error) {
			calls++
			answers, err := right(to, objects)
			for i := range answers {
				answers[i] = []byte(change(string(answers[i])))
			}
			return answers, err
		}
	}
	for name, test := range map[string]struct {
		convert      Convert
		problem, err string
	}{
		"answers differently each time": {changed(func(answer string) string { return strings.ReplaceAll(answer, `"p`, fmt.Sprintf(`"p%d`, calls)) }), "the same answer each time", ""},
		"answers at the wrong version":  {func(_ string, objects [][]byte) ([][]byte, error) { return objects, nil }, "answers with apiVersion", ""},
		"renames objects":               {changed(func(answer string) string { return strings.ReplaceAll(answer, "conversion-probe", "other") }), "changes the kind, name", ""},
		"answers too little": {func(to string, objects [][]byte) ([][]byte, error) {
			answers, err := right(to, objects)
			return answers[1:], err
		}, "", "objects, not"},
		"answers no JSON":    {changed(func(string) string { return "" }), "", "read an answer"},
		"answers no object":  {changed(func(string) string { return "[]" }), "is no object", ""},
		"refuses everything": {func(string, [][]byte) ([][]byte, error) { return nil, ErrRefused }, "", "refuses every object"},
		"fails":              {func(string, [][]byte) ([][]byte, error) { return nil, errors.New("it hangs") }, "", "it hangs"},
	} {
		t.Run(name, func(t *testing.T) {
			draft, err := Make(Input{CRD: crd, Spoke: "v1", Hub: "v2", Convert: test.convert})
			switch {
			case test.err != "":
				expect.Contains(t, "the error", fmt.Sprint(err), test.err)
			case err != nil:
				t.Error(err)
			case !strings.Contains(strings.Join(draft.Probe.Problems, "\n"), test.problem) || !draft.IsAmbiguous():
				t.Errorf("the problems are %q", draft.Probe.Problems)
			}
		})
	}
}

// TestSomeAreRefused: a converter that refuses some values is still asked about the others.
func TestSomeAreRefused(t *testing.T) {
	crd := widgets(t, `image: {type: string}, ttl: {type: string}`, `container: {type: object, properties: {image: {type: string}}}, ttlSeconds: {type: integer}`)
	right := engine(t, crd, rulesOf(t, `move: {from: .spec.image, to: .spec.container.image}`, `cast: {from: .spec.ttl, to: .spec.ttlSeconds, as: Seconds}`))
	draft := make2(t, Input{CRD: crd, Convert: func(to string, objects [][]byte) ([][]byte, error) {
		for _, object := range objects {
			if text := string(object); strings.Contains(text, `"ttl":"`) && !strings.Contains(text, `s"}`) && !strings.Contains(text, `s",`) {
				return nil, fmt.Errorf("%w: no duration", ErrRefused)
			}
		}
		return right(to, objects)
	}})
	want := []string{"move: {from: .spec.image, to: .spec.container.image}", "cast: {from: .spec.ttl, to: .spec.ttlSeconds, as: Seconds}"}
	expect.Equal(t, "rules", want, textsOf(draft))
	expect.Equal(t, "the probe was never refused", false, draft.Probe.Refused == 0)
}

// TestHostile: what is not a pair of structural schemas is refused, and nothing in a schema leaves its comment.
func TestHostile(t *testing.T) {
	crd := widgets(t, `a: {type: string}`, `a: {type: string}`)
	for name, test := range map[string]struct {
		change func(crd *apiextensionsv1.CustomResourceDefinition)
		spoke  string
		want   string
	}{
		"no such version": {func(*apiextensionsv1.CustomResourceDefinition) {}, "v3", "no version"},
		"one version":     {func(*apiextensionsv1.CustomResourceDefinition) {}, "v2", "nothing to convert"},
		"unknown fields":  {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.PreserveUnknownFields = true }, "v1", "unknown structure"},
		"not structural": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = props{Properties: map[string]props{"a": {}}, Type: "object", Items: &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: []props{{}}}}
		}, "v1", "structural"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := crd.DeepCopy()
			test.change(crd)
			_, err := Make(Input{CRD: crd, Spoke: test.spoke, Hub: "v2"})
			expect.Contains(t, "the error", fmt.Sprint(err), test.want)
		})
	}
	hostile := widgets(t, `"x\n- drop: {from: .spec.y}\nz": {type: string}, "{}": {type: string}, "a b": {type: string}`, `"x\u2028w": {type: string}, n: {type: array, items: {type: string}}`)
	var out strings.Builder
	expect.NoError(t, make2(t, Input{CRD: hostile}).WriteText(&out))
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(out.String()), policy))
	expect.Equal(t, "rules of the policy", 0, len(policy.Spec.Converter.Declarative.Spokes[0].Rules))
}

// large returns two versions with n leaves each, of which most have other names in the other.
func large(t testing.TB, n int) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	nouns := []string{"Timeout", "Limit", "Image", "Policy", "Address", "Weight", "Class", "Budget"}
	var v1, v2 strings.Builder
	for group := range n / 50 {
		fmt.Fprintf(&v1, "part%d: {type: object, properties: {", group)
		fmt.Fprintf(&v2, "part%d: {type: object, properties: {", group)
		for i := range 50 {
			fmt.Fprintf(&v1, "%s%d: {type: string}, ", strings.ToLower(nouns[i%8])+nouns[(i/8)%8], i)
			fmt.Fprintf(&v2, "new%s%d: {type: string}, ", nouns[i%8]+nouns[(i/8)%8], i)
		}
		v1.WriteString("}}, ")
		v2.WriteString("}}, ")
	}
	return widgets(t, v1.String(), v2.String())
}

// TestLarge drafts from schemas with 10,000 leaves.
func TestLarge(t *testing.T) {
	crd := large(t, 10_000)
	draft, err := Make(Input{CRD: crd, Spoke: "v1", Hub: "v2"})
	expect.NoError(t, err)
	if len(draft.Rules) != maxRules || len(draft.Ambiguous) == 0 || !strings.Contains(draft.Ambiguous[0].Why, "at most 256 rules") {
		t.Errorf("there are %d rules, and %d ambiguous fields", len(draft.Rules), len(draft.Ambiguous))
	}
}

// TestRepeats: the same input gives the same draft.
func TestRepeats(t *testing.T) {
	test := (*expect.YAML[map[string]kind](t, "testdata/kinds.yaml"))["a list with another name"]
	crd := widgets(t, test.V1, test.V2)
	var first string
	for range 5 {
		var out strings.Builder
		expect.NoError(t, make2(t, Input{CRD: crd, Convert: engine(t, crd, rulesOf(t, append([]string{
			`default: {from: '.spec.servers[*].zone', value: x}`, `drop: {to: '.spec.serverEndpoints[*].zone'}`}, flow(test.Rules[0]))...))}).WriteText(&out))
		if first == "" {
			first = out.String()
		}
		expect.Equal(t, "the draft, made again", first, out.String())
	}
}
